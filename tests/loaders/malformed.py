"""Damaged model files from the field through the whole program: run, model, check, tokenize and serve either work or end soon with exit code 1
and one line that names the file and the fault. No crash, no hang, little memory.

malformed.py PROGRAM [SANITIZER...]: with sanitizers memory is not measured. Exit code 77: the files are not here.
"""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile

PROGRAM, SANITIZERS = sys.argv[1], sys.argv[2:]
SOURCE = os.environ.get("MEKIK_SOURCE", ".")
FOLDER = os.path.join(os.environ.get("MEKIK_CASES", os.path.join(SOURCE, "..", "shared", "cases")), "malformed")
SECONDS = 120 if SANITIZERS else 30
MORE_BYTES = 48 << 20  # than the good file takes
ADDRESS_SPACE = 4 << 30

# What the line must say. Where `model` succeeds, the fault is in what it does not use.
FAULTS = {
    "magic_only.gguf": "the file has 4 bytes",
    "empty.gguf": "is empty",
    "lfs_pointer.gguf": "Git LFS pointer",
    "bigendian_ver.gguf": "big-endian",
    "ver99.gguf": "version 99",
    "dim_overflow.gguf": '"token_embd.weight"',
    "dim_overflow2.gguf": '"token_embd.weight"',
    "dim_negative.gguf": '"token_embd.weight"',
    "align0.gguf": "general.alignment",
    "align3.gguf": "general.alignment",
    "align_huge.gguf": "general.alignment",
    "tensor_dup.gguf": '"output_norm.weight" occurs twice',
    "tensor_longname.gguf": "4096 bytes",
    "truncated_header.gguf": "truncated",
    "truncated_data.gguf": "need 77568 bytes, the file has 73472",
    "missing_tensor.gguf": '"blk.0.ffn_up.weight"',
    "arch_unknown.gguf": "no page matches 'nosuch'",
    "bos_oov.gguf": "bos_token_id is 999999",
    "scores_short.gguf": "scores has 10 entries for 260 tokens",
    "types_short.gguf": "token_type has 10 entries for 260 tokens",
    "byte_token_neg.gguf": '"<0x-1>"',
    "byte_token_zz.gguf": '"<0xZZ>"',
    "vocab_short.gguf": "260 entries for 100 tokens",
}
# The same of safetensors. The index is tried as it is, and as the index of a folder.
SHARD_FAULTS = {
    "hdr_huge.safetensors": "claims a header of 9223372036854775808 bytes",
    "hdr_over_cap.safetensors": "claims a header of 100000001 bytes; at most 100000000 are read",
    "hdr_past_eof.safetensors": "claims a header of 5000 bytes, but only 65 follow",
    "hdr_7bytes.safetensors": "the file has 7 bytes",
    "hdr_notjson.safetensors": "the header is not valid JSON",
    "hdr_array.safetensors": "the header is not a JSON object",
    "hdr_deep.safetensors": 'tensor "a" is not described by an object',
    "shape_vs_offsets.safetensors": '"t" has the shape [1000, 1000] of F32, which is 4000000 bytes, but its data_offsets cover 4',
    "shape_overflow.safetensors": '"t" has the shape [4294967296, 4294967296], whose size in bytes does not fit',
    "offsets_reversed.safetensors": '"t" has data_offsets that end before they begin',
    "offsets_past_end.safetensors": "is truncated: its tensors need 171 bytes, the file has 159",
    "offsets_negative.safetensors": '"t" has the negative number -16',
    "offsets_float.safetensors": '"t" has a number in its data_offsets that is not a whole one',
    "dtype_unknown.safetensors": '"t" has the dtype "F99"',
    "index_missing_shard.json": "model-00001-of-00002.safetensors, model-00002-of-00002.safetensors",
}
GOOD_SHARDS = ["good.safetensors", "good_unordered.safetensors", "good_padded.safetensors", "good_scalar_empty.safetensors"]
GOOD = ["good_tiny_llama.gguf", "align_i32.gguf"]  # the second: a documented fallback
BROKEN_NUMBERS = ["nan_weights.gguf"]
OF_TOKENIZER = ["bos_oov.gguf", "scores_short.gguf", "types_short.gguf", "byte_token_neg.gguf", "byte_token_zz.gguf", "vocab_short.gguf"]

failures = []


class Outcome:
    def __init__(self, *arguments):
        self.arguments = arguments
        before = None if SANITIZERS else lambda: resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=before)
            timer = subprocess.Popen(["sleep", str(SECONDS)])
            done, status, usage = self.wait(process, timer)
            self.hung = not done
            self.code = os.waitstatus_to_exitcode(status)
            self.bytes = usage.ru_maxrss * 1024
            out.seek(0), err.seek(0)
            self.out, self.err = out.read().decode("utf-8", "strict"), err.read().decode("utf-8", "strict")
        # Warnings come with a date; what is left is the complaint.
        self.lines = [line for line in self.err.splitlines() if line and not line[:2] == "20"]

    @staticmethod
    def wait(process, timer):
        """The first of the two to end; then the process is no more."""
        while True:
            pid, status, usage = os.wait3(0)
            if pid == process.pid:
                timer.kill()
                timer.wait()
                process.returncode = 0
                return True, status, usage
            if pid == timer.pid:
                timer.returncode = 0
                process.kill()
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = 0
                return False, status, usage

    def expect(self, holds, what):
        if not holds:
            shown = " ".join(self.arguments)
            failures.append(f"{shown}: {what}; exit code {self.code}, {self.bytes >> 20} MiB, said: {self.err[-600:] or self.out[-300:]}")

    def expect_end(self, baseline):
        self.expect(not self.hung, f"still runs after {SECONDS} s")
        self.expect(self.code >= 0 and self.code < 64, "was ended by a signal or a sanitizer")
        self.expect(SANITIZERS or self.bytes < baseline + MORE_BYTES, f"took much more memory than the {baseline >> 20} MiB of a good file")


def expect_refused(outcome, file, fault, baseline):
    outcome.expect_end(baseline)
    outcome.expect(outcome.code == 1, "expected exit code 1")
    first = outcome.lines[0] if outcome.lines else ""
    outcome.expect(fault in first and file in first, f"expected one line with {file} and {fault}")
    outcome.expect(first.count(file) == 1, "names the file more than once")
    # A mistake that belongs to an architecture page shows its line and a caret, too.
    outcome.expect(len(outcome.lines) == 1 or ".toml:" in first and len(outcome.lines) == 3, "expected one line")


def pipeline_of(folder, path):
    made = os.path.join(folder, "pipeline.toml")
    with open(made, "w") as file:
        file.write(f"[model]\npath = {json.dumps(path)}\n[server]\nlisten = [\"unix:{folder}/s\"]\n")
    return made


def check_damaged(folder, baseline):
    for file, fault in FAULTS.items():
        path = os.path.join(FOLDER, file)
        pipeline = pipeline_of(folder, path)
        for arguments in (["run", path, "--prompt", "hi"], ["run", path, "--raw", "--prompt", "hi"], ["check", pipeline], ["serve", pipeline],
                          ["model", path], ["logits", path, "--tokens", "1"]):
            expect_refused(Outcome(*arguments), file, fault, baseline)
        if file in OF_TOKENIZER:
            expect_refused(Outcome("tokenize", path, "--text", "hi"), file, fault, baseline)


def check_good(folder, baseline):
    for file in GOOD:
        path = os.path.join(FOLDER, file)
        for arguments in (["check", pipeline_of(folder, path)], ["model", path, "--tensors", "--program"], ["tokenize", path, "--text", "hi"]):
            outcome = Outcome(*arguments)
            outcome.expect_end(baseline)
            outcome.expect(outcome.code == 0, "expected success")
        outcome = Outcome("run", path, "--raw", "--prompt", "hi", "--temperature", "0", "--max-tokens", "5", "--ignore-eos", "--json")
        outcome.expect_end(baseline)
        # All weights are zero, so all logits are equal, and the first token is taken.
        outcome.expect(outcome.code == 0 and json.loads(outcome.out)["tokens"] == [0] * 5, "expected token 0 five times")
        chat = Outcome("run", path, "--prompt", "hi")
        chat.expect(chat.code == 1 and "chat template" in chat.err and "--raw" in chat.err, "expected the way out without a chat template")


def check_numbers(baseline):
    for file in BROKEN_NUMBERS:
        outcome = Outcome("run", os.path.join(FOLDER, file), "--raw", "--prompt", "hi", "--max-tokens", "5")
        outcome.expect_end(baseline)
        outcome.expect(outcome.code == 1 and len(outcome.lines) == 1 and "NaN" in outcome.err, "expected one line about NaN")


def check_damaged_shards(folder, baseline):
    for file, fault in SHARD_FAULTS.items():
        path = os.path.join(FOLDER, file)
        pipeline = pipeline_of(folder, path)
        for arguments in (["run", path, "--raw", "--prompt", "hi"], ["check", pipeline], ["serve", pipeline], ["model", path], ["tokenize", path, "--text", "hi"],
                          ["logits", path, "--tokens", "1"]):
            expect_refused(Outcome(*arguments), file, fault, baseline)
        # And as the weights of a folder.
        name = "model.safetensors.index.json" if file.endswith(".json") else "model.safetensors"
        inside = os.path.join(folder, file)
        os.mkdir(inside)
        shutil.copy(path, os.path.join(inside, name))
        with open(os.path.join(inside, "config.json"), "w") as config:
            config.write('{"architectures": ["FooForCausalLM"]}')
        expect_refused(Outcome("model", inside), name, fault, baseline)


def check_good_shards(folder, baseline):
    """A file alone is looked into; to run, it needs to be said what it is."""
    for file in GOOD_SHARDS:
        path = os.path.join(FOLDER, file)
        with open(path, "rb") as f:
            header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        names = set(header) - {"__metadata__"}
        outcome = Outcome("model", path, "--tensors", "--json")
        outcome.expect_end(baseline)
        outcome.expect(outcome.code == 0 and {t["name"] for t in json.loads(outcome.out)["tensors"]} == names, f"expected the tensors {names}")
        outcome = Outcome("model", path, "--tensors")
        outcome.expect(outcome.code == 0 and not outcome.lines and "no config.json" in outcome.out, "expected success")
        expect_refused(Outcome("run", path, "--raw", "--prompt", "hi"), file, "there is no config.json", baseline)
        expect_refused(Outcome("tokenize", path, "--text", "hi"), file, "no tokenizer", baseline)
        # With a config.json beside it, in the folder of a model or not: the architecture is what is wrong.
        inside = os.path.join(folder, file)
        os.mkdir(inside)
        shutil.copy(path, os.path.join(inside, file))
        with open(os.path.join(inside, "config.json"), "w") as config:
            config.write('{"architectures": ["FooForCausalLM"], "limit": Infinity}')
        for named in (inside, os.path.join(inside, file)):
            outcome = Outcome("run", named, "--raw", "--prompt", "hi")
            outcome.expect_end(baseline)
            outcome.expect(outcome.code == 1 and len(outcome.lines) == 1 and "no page matches 'FooForCausalLM'; pages are TOML: docs/architecture-pages.md" in outcome.lines[0],
                           "expected that no page matches")


def main():
    if not os.path.isdir(FOLDER):
        print(f"skipped: no {FOLDER}")
        return 77
    listed = {entry["file"] for entry in json.load(open(os.path.join(FOLDER, "manifest.json")))}
    known = set(FAULTS) | set(GOOD) | set(BROKEN_NUMBERS) | set(SHARD_FAULTS) | set(GOOD_SHARDS)
    if listed != known:
        failures.append(f"the manifest and this test differ in {sorted(listed ^ known)}")
    baseline = Outcome("run", os.path.join(FOLDER, GOOD[0]), "--raw", "--prompt", "hi", "--max-tokens", "1").bytes
    with tempfile.TemporaryDirectory() as folder:
        check_damaged(folder, baseline)
        check_good(folder, baseline)
        check_numbers(baseline)
        check_damaged_shards(folder, baseline)
        check_good_shards(folder, baseline)
    print("\n".join(failures))
    print(f"{len(known)} files, {len(failures)} failures, a good one takes {baseline >> 20} MiB")
    return 1 if failures else 0


sys.exit(main())
