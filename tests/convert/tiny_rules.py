"""What converting the models of tests/models/tiny has to do.

llama.cpp's converter writes no key for what many variants turn off or change (a list of dense layers, a window, a limit), or another page reads the
family in GGUF; only Jamba, Kimi Linear, LFM2 by `full_attn_idxs` and Qwen 3.5, whose value heads it reorders, are gaps of the pages.
"""
# These go to GGUF and back. Others may be refused by name (SAID): GGUF has no words for them, or their page does not turn around.
MUST = {
    "afmoe-plain", "arcee-biased", "arcee-plain", "baichuan-plain", "bailing_hybrid-plain", "bailing_hybrid-soft", "bert-mean", "bert-plain",
    "bloom-odd", "bloom-plain", "cohere-normed", "cohere-plain", "cohere2-plain", "cohere2_moe-older", "cohere2_moe-plain", "cohere2_moe-shared",
    "dots1-plain", "ernie4_5-biased", "ernie4_5-plain", "ernie4_5_moe-plain", "exaone-plain", "exaone4-full", "exaone4-mixed", "exaone4-plain",
    "exaone_moe-plain", "falcon-grouped", "gemma-mqa", "gemma-plain", "gemma2-plain", "gemma2-v4", "gemma3-plain", "gemma3-v4", "glm-bare",
    "glm-plain", "glm-wide", "glm4-biased", "glm4-plain", "glm4_moe-normed", "glm4_moe-plain", "glm4_moe-v4", "gpt2-plain", "gpt_bigcode-plain",
    "gpt_neox-plain", "gpt_oss-v4", "granite-biased", "granite-plain", "granitemoe-biased", "granitemoe-plain", "granitemoeshared-alone",
    "granitemoeshared-plain", "hunyuan-plain", "hunyuan_v1_moe-biased", "hunyuan_v1_moe-plain", "internlm2-plain", "lfm2-biased", "lfm2-plain",
    "lfm2-wide", "lfm2_moe-plain", "llama-linear", "llama-llama3", "llama-plain", "llama-stretched", "llama-yarn", "mamba2-grouped", "mamba2-plain",
    "mimo_v2_flash-hub", "mimo_v2_flash-plain", "minimax-alone", "minimax-mixed", "minimax-plain", "minimax_m2-tied", "ministral3-tied",
    "mistral-v4", "mistral-window", "mixtral-plain", "mixtral-v4", "mixtral-window", "modernbert_rank-plain", "mpt-plain", "nemotron-biased",
    "nemotron-plain", "nemotron_h-plain", "olmo-clipped", "olmo-plain", "olmo2-biased", "olmo2-plain", "olmo3-plain", "olmo3-yarn", "olmoe-biased",
    "olmoe-clipped", "olmoe-plain", "phi-plain", "phi3-long", "phi3-partial", "phi3-plain", "phi3-short", "phimoe-longrope", "phimoe-plain",
    "qwen2-plain", "qwen2-yarn", "qwen2_moe-plain", "qwen3-biased", "qwen3-plain", "qwen3-v4", "qwen3_moe-plain", "qwen3_moe-raw",
    "qwen3_next-plain", "qwen3_rank-plain", "seed_oss-biased", "seed_oss-plain", "smollm3-plain", "stablelm-normed", "stablelm-plain",
    "stablelm-v4", "starcoder2-bare", "starcoder2-plain", "starcoder2-window",
}
SAID = ("has no place in", "knows no models of format", "would not be the same in the other format", "as gguf: ", "as hf: ", "cannot be written", "does not fit it",
        "is not written", "cannot be cut")
# Where the folder that comes back spells its tensors as the page's first alternative does, not as the first folder did.
OTHER_NAMES = ("bert_rank-", "gemma3_vision-", "mistral3_vision-", "nomic_bert", "falcon-multiquery", "falcon-one_norm")
# llama.cpp's converter writes some tensors under other names than we, or turned where nothing depends on it.
ODD_TENSORS = {"falcon-multiquery": ("attn_norm.", "attn_norm_2."), "falcon-one_norm": ("attn_norm.", "attn_norm_2.")}
TURNED = ("nemotron_h",)
# What is said of these: a part of the line.
REFUSED = {  # not as GGUF
    "afmoe-every": "88 operations over 56 weights become 90 over 56",
    "afmoe-tied": "95 operations over 72 weights become 98 over 72",
    "bailing_hybrid-grouped": 'weight "gate", layer 0',
    "bamba-grouped": "knows no models of format gguf",
    "bamba-plain": "knows no models of format gguf",
    "cohere2_moe-prefix": "79 operations over 60 weights become 83 over 60",
    "deepseek_v2-grouped": "knows no models of format gguf",
    "deepseek_v2-lite": "knows no models of format gguf",
    "deepseek_v2-v4": "knows no models of format gguf",
    "deepseek_v3-direct": "rope, layer 0 has other whole numbers",
    "deepseek_v3-v4": "rope, layer 0: 0.948356 becomes 1.000000",
    "dots1-grouped": "74 operations over 58 weights become 74 over 58",
    "ernie4_5_moe-biased": 'weight "gate_sh_b", layer 0 has no place in gguf',
    "falcon_h1-gated": "86 operations over 62 weights become 60 over 62",
    "falcon_h1-normed": "86 operations over 47 weights become 60 over 47",
    "falcon_h1-scaled": "84 operations over 44 weights become 58 over 44",
    "falcon_mamba-biased": "knows no models of format gguf",
    "falcon_mamba-plain": "knows no models of format gguf",
    "flex_olmo-normed": "knows no models of format gguf",
    "flex_olmo-plain": "knows no models of format gguf",
    "gpt_oss-plain": "glu, layer 0: 1.500000 becomes 7.000000",
    "gpt_oss-yarn": "the window of its attention",
    "hunyuan_v1_moe-alpha": 'table "main" has other numbers',
    "jamba-dense": 'weight "w_in", layer 1',
    "jamba-plain": 'weight "w_in", layer 1',
    "kimi_linear-grouped": "len needs a list, not a whole number",
    "kimi_linear-plain": "len needs a list, not a whole number",
    "lfm2-older": 'weight "wq", layer 0',
    "lfm2_moe-raw": "moe_route, layer 1 has other whole numbers",
    "llama4_text-cool": 'weight "router", layer 0',
    "llama4_text-dense": "85 operations over 63 weights become 91 over 63",
    "llama4_text-plain": "106 operations over 56 weights become 109 over 56",
    "mamba2-limited": "28 operations over 19 weights become 26 over 19",
    "mimo_v2_flash-grouped": '"local" has another shape',
    "minimax-scaled": "85 operations over 40 weights become 79 over 40",
    "mistral4-grouped": "knows no models of format gguf",
    "mistral4-plain": "knows no models of format gguf",
    "olmo_hybrid-older": "knows no models of format gguf",
    "olmo_hybrid-plain": "knows no models of format gguf",
    "olmo_hybrid-turned": "knows no models of format gguf",
    "phimoe-biased": "moe_route_mixer, layer 0: 0.400000 becomes 0.020000",
    "qwen2_moe-normed": 'weight "router", layer 0',
    "qwen2_moe-sparse": 'weight "router", layer 0',
    "qwen2_moe-unbiased": "85 operations over 46 weights become 85 over 46",
    "qwen3_5_moe_text-plain": "gated_delta, layer 0 has other whole numbers",
    "qwen3_5_moe_text-tied": "gated_delta, layer 0 has other whole numbers",
    "qwen3_5_text-plain": "gated_delta, layer 0 has other whole numbers",
    "qwen3_5_text-tied": "gated_delta, layer 0 has other whole numbers",
    "qwen3_moe-dense": 'weight "router", layer 1',
    "qwen3_moe-window": "the window of its attention",
    "qwen3_next-raw": 'weight "router", layer 1',
    "qwen3_next-sparse": 'weight "router", layer 0',
    "solar_open-grouped": "knows no models of format gguf",
    "solar_open-plain": "knows no models of format gguf",
}
LOST = {  # not back as a folder
    "deepseek_v3-plain": "rope, layer 0: 1.000000 becomes 1.207944",
    "exaone_moe-grouped": "96 operations over 62 weights become 98 over 62",
}
