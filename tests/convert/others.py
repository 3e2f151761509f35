#!/usr/bin/env python3
"""Converted tiny models in the hands of others: llama.cpp computes with our GGUF file what it computes with its own converter's (tests/models/
gguf_twin.py), and transformers what is expected with the folder that comes back.

    others.py PROGRAM [NAME...]        exit code 77: neither llama-cpp-python nor transformers is installed
"""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: numpy is not installed (test.sh installs it)")
    sys.exit(77)
try:
    import llama_cpp
except ImportError:
    llama_cpp = None
try:
    if sys.argv[1] == "--llama":  # needs llama.cpp alone
        raise ImportError
    import torch
    import transformers
except ImportError:
    transformers = None

HERE = os.path.dirname(os.path.abspath(__file__))
TINY = os.path.join(HERE, "..", "models", "tiny")
PROGRAM = sys.argv[1]
sys.path[:0] = [HERE, os.path.join(HERE, "..", "models")]
import gguf_twin  # noqa: E402

# Of the rest, transformers wants keys that no page writes yet, or llama.cpp ends in an assertion.
NAMES = ["arcee-biased", "arcee-plain", "cohere-normed", "cohere-plain", "cohere2-plain", "ernie4_5-plain", "exaone-plain", "exaone4-mixed",
          "exaone4-plain", "falcon-grouped", "gemma-mqa", "gemma-plain", "glm-wide", "glm4-biased", "glm4-plain", "gpt_neox-plain", "granite-plain",
          "llama-plain", "llama-linear", "llama-llama3", "llama-yarn", "mistral-v4", "nemotron-plain", "qwen2-plain", "qwen2-yarn", "qwen3-biased",
          "qwen3-plain", "qwen3-v4", "starcoder2-plain", "stablelm-plain", "stablelm-v4", "olmo2-plain", "smollm3-plain", "phi3-plain", "gemma2-plain",
         "gemma2-scalar", "gemma2-v4", "gemma3-plain", "gemma3-v4", "gemma3n-plain", "gemma3n-shared", "gemma4-bare", "gemma4-experts", "gemma4-plain",
         "gemma4-shared", "gpt2-plain", "gpt2-scaled", "gpt_bigcode-heads", "gpt_bigcode-plain", "bloom-odd", "bloom-plain", "glm-bare", "glm-plain",
         "falcon-one_norm", "falcon_h1-scaled", "jamba-plain", "lfm2-older", "falcon_mamba-plain", "cohere2-mixed", "exaone_moe-grouped", "gpt_oss-v4"]
OWN_WAY = ("phi3-plain", "qwen2-yarn")  # llama.cpp takes the same keys as its converter writes, and other windows and scalings than transformers
BOUND, SAME, ROUGH = 1e-3, 1e-4, 5e-2  # of the logits' standard deviation: transformers; within llama.cpp; llama.cpp against transformers


def mekik(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"mekik {' '.join(arguments)}: {done.stderr or done.stdout}"


def quiet():
    sink = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda level, text, data: None)
    llama_cpp.llama_log_set(sink, ctypes.c_void_p(0))
    return sink


def in_llama_cpp(path, tokens):
    """In a process of its own, which an assertion of llama.cpp ends: None where it does not open the file, or dies of it."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--llama", path, ",".join(map(str, tokens))], capture_output=True, timeout=120,
                          env={**os.environ, "GGML_NO_BACKTRACE": "1"})
    return np.frombuffer(done.stdout, np.float32) if done.returncode == 0 and done.stdout else None


def llama_child(path, tokens):
    kept = quiet()
    out = llama_logits(path, tokens)
    if out is not None:
        sys.stdout.buffer.write(out.astype(np.float32).tobytes())
    del kept
    return 0


def llama_logits(path, tokens):
    parameters = llama_cpp.llama_model_default_params()
    parameters.n_gpu_layers = 0
    model = llama_cpp.llama_model_load_from_file(path.encode(), parameters)
    if not model:
        return None
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx, settings.n_threads, settings.n_threads_batch = 64, 1, 1
    settings.type_k = settings.type_v = 0  # F32
    context = llama_cpp.llama_init_from_model(model, settings)
    assert context, "llama.cpp makes no context of it"
    array = (ctypes.c_int * len(tokens))(*tokens)
    assert llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(tokens))) == 0
    count = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(model))
    out = np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(context, -1), (count,)).copy()
    llama_cpp.llama_free(context)
    llama_cpp.llama_model_free(model)
    return out


def in_transformers(folder, tokens):
    config = transformers.AutoConfig.from_pretrained(folder)
    config.pad_token_id = None  # the default of its class may lie outside of a tiny vocabulary
    load = {"config": config, "dtype": torch.float32}
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa", **load).eval()
    except ValueError:  # soft caps
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", **load).eval()
    with torch.no_grad():
        return model(torch.tensor([tokens])).logits[0, -1].numpy()


def write_twin(folder, scratch):
    """As llama.cpp's converter writes it; of a tokenizer it says that there is none."""
    twin = os.path.join(scratch, "twin")
    os.mkdir(twin)
    for name in os.listdir(folder):
        os.symlink(os.path.join(folder, name), os.path.join(twin, name))
    with open(os.path.join(folder, "gguf.json")) as file:
        recipe = json.load(file)
    recipe["metadata"].setdefault("tokenizer.ggml.model", "no_vocab")
    os.remove(os.path.join(twin, "gguf.json"))
    with open(os.path.join(twin, "gguf.json"), "w") as file:
        json.dump(recipe, file)
    return gguf_twin.write(twin, os.path.join(scratch, "twin.gguf"))


def compare(got, expected, bound, what):
    off = np.abs(got - expected).max() / expected.std()
    assert off < bound, f"{what} computes something else: {off:.2g} of a standard deviation"


def check(name, scratch):
    folder = os.path.join(TINY, name)
    reference = np.load(os.path.join(folder, "expected.npz"))
    tokens = [int(t) for t in reference["tokens"]]
    made, back, done = os.path.join(scratch, "made.gguf"), os.path.join(scratch, "back"), []
    mekik("convert", folder, "--to", "gguf", "-o", made)
    if llama_cpp is not None and gguf_twin.there(folder):
        theirs, ours = in_llama_cpp(write_twin(folder, scratch), tokens), in_llama_cpp(made, tokens)
        if theirs is None and ours is None:
            done.append("llama.cpp opens neither its own nor ours")
        elif theirs is None and name not in OWN_WAY:
            compare(ours, reference["logits"][-1], ROUGH, "llama.cpp")
            done.append("llama.cpp (only ours)")
        elif theirs is not None:
            assert ours is not None, "llama.cpp does not open it"
            compare(ours, theirs, SAME, "llama.cpp")
            done.append("llama.cpp")
    if transformers is not None:
        mekik("convert", made, "--to", "safetensors", "-o", back)
        compare(in_transformers(back, tokens), reference["logits"][-1], BOUND, "transformers")
        done.append("transformers")
    return ", ".join(done)


def main():
    if llama_cpp is None and transformers is None:
        print("skipped: neither llama-cpp-python nor transformers is installed")
        return 77
    if transformers is not None:
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
    failed, names = 0, sys.argv[2:] or NAMES
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            try:
                print(f"ok      {name}: {check(name, scratch)}", flush=True)
            except Exception as error:  # whatever they throw
                failed += 1
                print(f"FAILED  {name}: {str(error)[:600]}", flush=True)
    print(f"{len(names)} models, {failed} failures")
    return 1 if failed else 0


sys.exit(llama_child(sys.argv[2], [int(t) for t in sys.argv[3].split(",")]) if PROGRAM == "--llama" else main())
