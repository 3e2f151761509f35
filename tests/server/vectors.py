"""Embeddings and scores of pairs on the real program: the same numbers by the server, whole or among others, as by `mekik embed` and
`mekik logits`; every form of input; what is refused."""
import base64
import json
import math
import os
import shutil
import string
import struct
import subprocess
import tempfile

from harness import main
from real import MODEL, PROGRAM, Mekik, need_model

need_model()
EMBED, RERANK, CHAT = "/v1/embeddings", "/v1/rerank", "/v1/chat/completions"
TEXTS = ["The sky is blue.", "Bread is made of flour, water and salt.", "x", "A long text. " * 40]
LETTERS = string.ascii_lowercase
FORM = "<|im_start|>user\\nDoes this answer {query}? {document}<|im_end|>\\n<|im_start|>assistant\\n"


def of_model(**keys):
    """More keys of [model], through the last one of the pipeline's template."""
    return MODEL + '"\n' + "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items()) + '\npage = "llama'


embeds = Mekik(model=of_model(task="embed", pooling="last"), max_batch_tokens=64)
means = Mekik(model=of_model(task="embed", pooling="mean"), max_batch_tokens=256)
scores = Mekik(model=MODEL + f'"\ntask = "score"\nscore_tokens = ["no", "yes"]\npair_template = "{FORM}"\npage = "llama')
texts = Mekik()


def command(*words):
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def vectors(answer):
    assert answer["object"] == "list" and [row["index"] for row in answer["data"]] == list(range(len(answer["data"]))), answer
    return [row["embedding"] for row in answer["data"]]


def same_numbers_as_the_command():
    for server, pooling in ((embeds, "last"), (means, "mean")):
        together = vectors(server.post(EMBED, {"input": TEXTS}))
        for text, vector in zip(TEXTS, together):
            alone = vectors(server.post(EMBED, {"input": text}))[0]
            assert alone == vector, "a neighbour in the batch changed bits"
            assert math.isclose(sum(x * x for x in vector), 1, rel_tol=1e-5)
        said = command("embed", MODEL, "--text", TEXTS[3], "--pooling", pooling, "--json")["embedding"]
        assert said == together[3], f"{pooling}: the server and mekik embed differ"
    assert vectors(embeds.post(EMBED, {"input": TEXTS[0]})) != vectors(means.post(EMBED, {"input": TEXTS[0]}))


def forms_of_input():
    tokens = [embeds.post("/tokenize", {"prompt": text})["tokens"] for text in TEXTS]
    expected = vectors(embeds.post(EMBED, {"input": TEXTS}))
    assert vectors(embeds.post(EMBED, {"input": tokens})) == expected
    assert vectors(embeds.post(EMBED, {"input": tokens[1]})) == expected[1:2]
    answer = embeds.post(EMBED, {"input": TEXTS, "encoding_format": "base64"})
    for row, vector in zip(answer["data"], expected):
        raw = base64.b64decode(row["embedding"])
        assert list(struct.unpack(f"<{len(raw) // 4}f", raw)) == [struct.unpack("<f", struct.pack("<f", x))[0] for x in vector]
    assert answer["usage"] == {"prompt_tokens": sum(map(len, tokens)), "total_tokens": sum(map(len, tokens))}, answer["usage"]


def fewer_dimensions():
    whole = vectors(embeds.post(EMBED, {"input": TEXTS[0]}))[0]
    answer = embeds.post(EMBED, {"input": TEXTS[0], "dimensions": 32})
    assert "dimensions" in answer["warnings"][0]
    length = math.sqrt(sum(x * x for x in whole[:32]))
    assert all(math.isclose(a, b / length, rel_tol=1e-4, abs_tol=1e-7) for a, b in zip(vectors(answer)[0], whole[:32]))
    assert "warnings" not in embeds.post(EMBED, {"input": TEXTS[0], "dimensions": len(whole)})


def more_inputs_than_the_queue_holds():
    rows = vectors(embeds.post(EMBED, {"input": [[n % 500 + 1] for n in range(700)]}))
    assert len(rows) == 700 and rows[0] == rows[500] and rows[0] != rows[1]


def refused():
    for body, word in (({"input": []}, "at least one"), ({"input": [""]}, "empty"), ({"input": [[]]}, "at least one"),
                       ({"input": [[1 << 30]]}, "token ids"), ({"input": 3}, "must be"), ({}, "missing"),
                       ({"input": "x", "encoding_format": "int8"}, "float or base64"), ({"input": "x", "dimensions": 0}, "from 1 to"),
                       ({"input": "x", "dimensions": 100000}, "from 1 to"), ({"input": "x", "stream": True}, "unknown field"),
                       ({"input": ["y " * 9000]}, "context")):
        assert word in embeds.refused(EMBED, body), body
    for server, path, body in ((embeds, CHAT, {"messages": [{"role": "user", "content": "Hi"}]}), (texts, EMBED, {"input": "x"}),
                               (embeds, RERANK, {"query": "x", "documents": ["y"]}), (scores, EMBED, {"input": "x"})):
        server.refused(path, body, param="model", code="wrong_task")


def whole_texts_only_where_pooling_needs_them():
    means.refused(EMBED, {"input": "word " * 400}, code="context_length_exceeded")
    assert vectors(embeds.post(EMBED, {"input": "word " * 400}))  # in steps of 64 tokens


def ranking():
    query, documents = "Why is the sky blue?", ["Light is scattered by air.", "Bread has salt.", {"text": "Paris is in France."}, "Yes."]
    answer = scores.post(RERANK, {"query": query, "documents": documents, "return_documents": True})
    results = answer["results"]
    assert [r["relevance_score"] for r in results] == sorted((r["relevance_score"] for r in results), reverse=True)
    assert sorted(r["index"] for r in results) == [0, 1, 2, 3] and all(0 <= r["relevance_score"] <= 1 for r in results)
    no, yes = (scores.post("/tokenize", {"prompt": word, "add_special_tokens": False})["tokens"][0] for word in ("no", "yes"))
    for result in results:
        text = result["document"]["text"]
        prompt = FORM.replace("\\n", "\n").replace("{query}", query).replace("{document}", text)
        tokens = scores.post("/tokenize", {"prompt": prompt, "add_special_tokens": False})["tokens"]
        logits = command("logits", MODEL, "--tokens", ",".join(map(str, tokens)), "--json")["logits"][0]
        expected = 1 / (1 + math.exp(logits[no] - logits[yes]))
        assert math.isclose(result["relevance_score"], expected, rel_tol=1e-6), (result, expected)
    assert len(scores.post(RERANK, {"query": query, "documents": documents, "top_n": 2})["results"]) == 2
    for body, word in (({"documents": ["x"]}, "query"), ({"query": "x"}, "documents"), ({"query": "x", "documents": []}, "at least one"),
                       ({"query": "x", "documents": [3]}, "string"), ({"query": "x", "documents": ["y"], "top_n": 0}, "top_n")):
        assert word in scores.refused(RERANK, body), body


def a_template_in_a_text_stays_text():
    body = {"query": "{document}", "documents": ["<|im_end|>{query}"]}
    assert scores.post(RERANK, body)["usage"]["prompt_tokens"] > 20


def an_encoder():
    """One that sees both ways: the same bits beside others as alone."""
    path = os.path.join(os.environ["MEKIK_SOURCE"], "tests", "models", "tiny", "bert-mean")
    inputs = [[1, 2, 3], [4, 5, 6, 7, 8, 9], [1, 2, 3], list(range(3, 60))]
    with Mekik(model=path) as encoder:
        rows = vectors(encoder.post(EMBED, {"input": inputs}))
        for tokens, row in zip(inputs, rows):
            assert command("embed", path, "--tokens", ",".join(map(str, tokens)), "--json")["embedding"] == row, tokens


def word_pieces():
    """A tokenizer of BERT's kind for the 80 tokens of the tiny models."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *LETTERS, *("##" + c for c in LETTERS), *"the sky is blue bread ##ing why . ?".split()]
    added = [{"id": i, "content": words[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i in range(4)]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
             "vocab": {word: i for i, word in enumerate(words)}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "model": model,
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}}


def an_encoder_ranks():
    """A cross encoder with its own tokenizer: pairs with both token types. The scores are transformers' for the same folder."""
    documents = {"The sky is blue.": 0.5946916937828064, "Bread.": 0.6827187538146973, "why why why": 0.6125200390815735,
                 "a b c d e f g": 0.6442893743515015}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ranker")
        shutil.copytree(os.path.join(os.environ["MEKIK_SOURCE"], "tests", "models", "tiny", "bert_rank-plain"), path)
        with open(os.path.join(path, "tokenizer.json"), "w") as file:
            json.dump(word_pieces(), file)
        with Mekik(model=path) as ranker:
            answer = ranker.post(RERANK, {"query": "Why is the sky blue?", "documents": list(documents), "return_documents": True})
    assert [r["document"]["text"] for r in answer["results"]] == sorted(documents, key=documents.get, reverse=True)
    for result in answer["results"]:
        assert math.isclose(result["relevance_score"], documents[result["document"]["text"]], abs_tol=2e-5), result
    assert answer["usage"]["prompt_tokens"] == 53, answer["usage"]


def models_say_their_task():
    for server, task in ((embeds, "embed"), (scores, "score"), (texts, "generate")):
        assert json.loads(server.request("GET", "/v1/models")[2])["data"][0]["task"] == task


def pipelines_that_cannot_be():
    for keys, word in (({"task": "score"}, "pair_template"), ({"task": "score", "pair_template": "{query}"}, "{document}"),
                       ({"task": "score", "pair_template": "{query}{document}", "score_tokens": ["no", "yes it is"]}, "must be one"),
                       ({"task": "score", "pair_template": "{query}{document}"}, "score_tokens"),
                       ({"task": "score", "pair_template": "{query}{document}", "score_tokens": ["no", "no"]}, "the same token"),
                       ({"pooling": "mean"}, "task"), ({"task": "embed", "score_tokens": ["a", "b"]}, "score_tokens")):
        words = [word for key, value in keys.items() for word in ("--set", f"model.{key}={json.dumps(value)}")]
        done = subprocess.run([PROGRAM, "check", embeds.write("bad.toml"), *words], capture_output=True, text=True)
        assert done.returncode == 2 and word in done.stderr, (keys, done.returncode, done.stderr)


def classes_that_are_no_score():
    """A model of three classes shows them all, but cannot rank: `check` and `serve` say so."""
    path = os.path.join(os.environ["MEKIK_SOURCE"], "tests", "models", "tiny", "bert_rank-classes")
    run = lambda *words: subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
    assert len(json.loads(run("logits", path, "--tokens", "5,6,7", "--json").stdout)["score"]) == 3
    for verb in ("check", "serve"):
        done = run(verb, path)
        assert done.returncode == 1 and "tells 3 classes apart" in done.stderr and "`mekik logits`" in done.stderr, (verb, done)


def they_end():
    codes = [server.stop() for server in (embeds, means, scores, texts)]  # all of them, whatever the first says
    assert codes == [0] * 4, codes


main([same_numbers_as_the_command, forms_of_input, fewer_dimensions, more_inputs_than_the_queue_holds, refused,
      whole_texts_only_where_pooling_needs_them, ranking, a_template_in_a_text_stays_text, an_encoder, an_encoder_ranks,
      models_say_their_task, pipelines_that_cannot_be, classes_that_are_no_score, they_end])
