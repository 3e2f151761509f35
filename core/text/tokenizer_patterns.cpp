// Pre-tokenizers by the name that GGUF files give them. To add one: copy the model's pattern out of its tokenizer.json
// ("pre_tokenizer", and "normalizer" for nfc), and check it against the reference tokenizer on text with digits, spaces, newlines,
// apostrophes, combining marks and other scripts. An unknown name is refused: a wrong pattern gives plausible but wrong ids.
#include <array>

#include "text/tokenizer_split.hpp"

namespace mekik::text {

namespace {

using Text = std::string_view;

#define MEKIK_GPT2 R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"
#define MEKIK_CONTRACTION R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define MEKIK_PUNCTUATION_AND_SPACE R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define MEKIK_CASED_WORD_1 R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
#define MEKIK_CASED_WORD_2 R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
#define MEKIK_CASED_REST R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"

constexpr std::array<Text, 1> kGpt2{MEKIK_GPT2};
constexpr std::array<Text, 2> kDigitsGpt2{R"(\p{N})", MEKIK_GPT2};
constexpr std::array<Text, 1> kLlama3{MEKIK_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" MEKIK_PUNCTUATION_AND_SPACE};
constexpr std::array<Text, 1> kQwen2{MEKIK_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" MEKIK_PUNCTUATION_AND_SPACE};
constexpr std::array<Text, 1> kQwen35{MEKIK_CONTRACTION
                                      R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<Text, 3> kFalcon{R"([\p{P}\$\+<=>\^~\|`]+)", MEKIK_GPT2, "[0-9][0-9][0-9]"};
constexpr std::array<Text, 1> kTekken{MEKIK_CASED_WORD_1 "|" MEKIK_CASED_WORD_2 R"(|\p{N})" MEKIK_CASED_REST};
constexpr std::array<Text, 1> kGpt4o{MEKIK_CASED_WORD_1 MEKIK_CONTRACTION "?|" MEKIK_CASED_WORD_2 MEKIK_CONTRACTION
                                                                          R"(?|\p{N}{1,3})" MEKIK_CASED_REST};
constexpr std::array<Text, 1> kUnlimitedDigits{MEKIK_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+)" MEKIK_PUNCTUATION_AND_SPACE};
constexpr std::array<Text, 2> kMiniCpm5{R"(\p{N}{1,3})", kUnlimitedDigits[0]};
constexpr std::array<Text, 1> kJais2{
    MEKIK_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
                      R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S))"
                      R"(|\s{1,2}(?!\S)|\s{1})"};
constexpr std::array<Text, 1> kBailing{
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::array<Text, 1> kSeedCoder{MEKIK_CONTRACTION
                                         R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<Text, 1> kUfakzeka{R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" MEKIK_PUNCTUATION_AND_SPACE};
constexpr std::array<Text, 2> kLaguna{R"([^\n]+|\n+)", kQwen2[0]};
constexpr std::array<Text, 1> kExaoneMoe{
    MEKIK_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr std::array<Text, 2> kTinyAya{kEndingDigitThrees, kGpt4o[0]};
constexpr std::array<Text, 1> kSuperBpe{kDigitThrees};
#define MEKIK_NOT_HAN(pattern) "(?:(?!\\p{sc:Han})" pattern ")"
#define MEKIK_KIMI_UPPER MEKIK_NOT_HAN(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])")
#define MEKIK_KIMI_LOWER MEKIK_NOT_HAN(R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])")
constexpr std::array<Text, 1> kKimi{R"(\p{sc:Han}+|[^\r\n\p{L}\p{N}]?)" MEKIK_KIMI_UPPER "*" MEKIK_KIMI_LOWER "+" MEKIK_CONTRACTION
                                    R"(?|[^\r\n\p{L}\p{N}]?)" MEKIK_KIMI_UPPER "+" MEKIK_KIMI_LOWER "*" MEKIK_CONTRACTION
                                    R"(?|\p{N}{1,3})" MEKIK_PUNCTUATION_AND_SPACE};
constexpr std::array<Text, 6> kChameleon{R"(<sentinel:[0-9]+>)",    R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)",
                                         R"(([\t\n]|    |  ))",     R"(\p{N})",
                                         R"([\p{P}!-/:-@\[-`{-~])", MEKIK_GPT2};
constexpr std::array<Text, 1> kBloom{R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)"};
constexpr std::array<Text, 2> kViking{R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)", R"(\p{N})"};
constexpr std::array<Text, 5> kDeepseekCoder{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                             R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", R"(\p{N})"};
constexpr std::array<Text, 3> kDeepseekV3{
    R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr std::array<Text, 4> kSpark{
    R"(\p{N}{1,3})", kDeepseekV3[1],
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
    R"(\p{N})"};
constexpr std::array<Text, 2> kYoutu{
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[!\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}:;,\x{FF01}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)",
    MEKIK_CASED_WORD_1 MEKIK_CONTRACTION "?|" MEKIK_CASED_WORD_2 MEKIK_CONTRACTION R"(?|\p{N})" MEKIK_CASED_REST};
constexpr std::array<Text, 3> kAfmoe{
    kDigitThrees,
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2E80}-\x{2FDF}\x{E00}-\x{E7F})"
    R"(\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)",
    kDeepseekV3[2]};
// The cased letters of the scripts that the authors listed. The fourth step is \s+$ there; as written here, it finds the same
// without trying every place inside a long run of spaces.
constexpr std::array<Text, 6> kDeepseekLlm{
    R"([\r\n])",
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"
    R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD})"
    R"(\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15})"
    R"(\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D})"
    R"(\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D})"
    R"(\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06})"
    R"(\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB})"
    R"(\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)",
    R"((?<!\s)\s++$)",
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)",
    R"(\p{N}+)"};

constexpr std::array kPreTokenizers{
    PreTokenizer{.name = "gpt-2", .steps = kGpt2},
    PreTokenizer{.name = "phi-2", .steps = kGpt2},
    PreTokenizer{.name = "mpt", .steps = kGpt2, .nfc = true},
    PreTokenizer{.name = "olmo", .steps = kGpt2, .nfc = true},
    PreTokenizer{.name = "smollm", .steps = kDigitsGpt2},
    PreTokenizer{.name = "starcoder", .steps = kDigitsGpt2},
    PreTokenizer{.name = "refact", .steps = kDigitsGpt2},
    PreTokenizer{.name = "codeshell", .steps = kDigitsGpt2},
    PreTokenizer{.name = "command-r", .steps = kDigitsGpt2, .nfc = true},
    PreTokenizer{.name = "llama-bpe", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "llama3", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "llama-v3", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "falcon3", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "lfm2", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "pixtral", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "dbrx", .steps = kLlama3},
    PreTokenizer{.name = "smaug-bpe", .steps = kLlama3},
    PreTokenizer{.name = "chatglm-bpe", .steps = kLlama3},
    PreTokenizer{.name = "glm4", .steps = kLlama3},
    PreTokenizer{.name = "jais", .steps = kGpt2},
    PreTokenizer{.name = "jina-es", .steps = kGpt2},
    PreTokenizer{.name = "jina-de", .steps = kGpt2},
    PreTokenizer{.name = "jina-v2-es", .steps = kGpt2},
    PreTokenizer{.name = "jina-v2-de", .steps = kGpt2},
    PreTokenizer{.name = "gigachat", .steps = kGpt2},
    PreTokenizer{.name = "a.x-4.0", .steps = kGpt2},
    PreTokenizer{.name = "mellum", .steps = kGpt2},
    PreTokenizer{.name = "exaone4", .steps = kGpt2},
    PreTokenizer{.name = "trillion", .steps = kGpt2},
    PreTokenizer{.name = "granite-docling", .steps = kGpt2},
    PreTokenizer{.name = "modern-bert", .steps = kGpt2, .nfc = true},
    PreTokenizer{.name = "jina-v1-en", .steps = kGpt2, .add_sep = true},
    PreTokenizer{.name = "jina-v2-code", .steps = kGpt2, .add_sep = true},
    PreTokenizer{.name = "roberta-bpe", .steps = kGpt2, .add_sep = true},
    PreTokenizer{.name = "exaone", .steps = kDigitsGpt2},
    PreTokenizer{.name = "minerva-7b", .steps = kDigitsGpt2},
    PreTokenizer{.name = "mellum2", .steps = kDigitsGpt2},
    PreTokenizer{.name = "falcon-h1", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "midm-2.0", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "jina-v5-nano", .steps = kLlama3, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "minicpm5", .steps = kMiniCpm5, .ignore_merges = true},
    PreTokenizer{.name = "jais-2", .steps = kJais2},
    PreTokenizer{.name = "kormo", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "f2llmv2", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "megrez", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "hunyuan", .steps = kQwen2},
    PreTokenizer{.name = "solar-open", .steps = kQwen2},
    PreTokenizer{.name = "grok-2", .steps = kQwen2},
    PreTokenizer{.name = "laguna", .steps = kLaguna},
    PreTokenizer{.name = "ufakzeka", .steps = kUfakzeka},
    PreTokenizer{.name = "seed-coder", .steps = kSeedCoder},
    PreTokenizer{.name = "bailingmoe", .steps = kBailing},
    PreTokenizer{.name = "bailingmoe2", .steps = kBailing},
    PreTokenizer{.name = "llada-moe", .steps = kBailing},
    PreTokenizer{.name = "exaone-moe", .steps = kExaoneMoe},
    PreTokenizer{.name = "chameleon", .steps = kChameleon, .add_bos = true},
    PreTokenizer{.name = "superbpe", .steps = kSuperBpe},
    PreTokenizer{.name = "kimi-k2", .steps = kKimi},
    PreTokenizer{.name = "tiny_aya", .steps = kTinyAya},
    PreTokenizer{.name = "cohere2moe", .steps = kTinyAya},
    PreTokenizer{.name = "hunyuan-dense", .steps = kDeepseekV3},
    PreTokenizer{.name = "hy_v4", .steps = kDeepseekV3},
    PreTokenizer{.name = "joyai-llm", .steps = kDeepseekV3},
    PreTokenizer{.name = "spark2_5", .steps = kSpark},
    PreTokenizer{.name = "youtu", .steps = kYoutu, .ignore_merges = true},
    PreTokenizer{.name = "afmoe", .steps = kAfmoe},
    PreTokenizer{.name = "kanana2", .steps = kGpt4o},
    PreTokenizer{.name = "talkie", .steps = kGpt4o},
    PreTokenizer{.name = "minimax-m2", .steps = kGpt4o},
    PreTokenizer{.name = "granite-embed-multi-97m", .steps = kGpt4o, .ignore_merges = true},
    PreTokenizer{.name = "qwen2", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "deepseek-r1-qwen", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "stablelm2", .steps = kQwen2, .nfc = true},
    PreTokenizer{.name = "qwen35", .steps = kQwen35, .nfc = true},
    PreTokenizer{.name = "deepseek-llm", .steps = kDeepseekLlm},
    PreTokenizer{.name = "deepseek-coder", .steps = kDeepseekCoder},
    PreTokenizer{.name = "deepseek-v3", .steps = kDeepseekV3},
    PreTokenizer{.name = "falcon", .steps = kFalcon},
    PreTokenizer{.name = "tekken", .steps = kTekken, .ignore_merges = true, .add_bos = true},
    PreTokenizer{.name = "gpt-4o", .steps = kGpt4o},
    PreTokenizer{.name = "llama4", .steps = kGpt4o},
    PreTokenizer{.name = "bloom", .steps = kBloom},
    PreTokenizer{.name = "gpt3-finnish", .steps = kBloom},
    PreTokenizer{.name = "poro-chat", .steps = kBloom},
    PreTokenizer{.name = "viking", .steps = kViking},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

}  // namespace mekik::text
