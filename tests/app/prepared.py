"""Weights that are packed once: the second start maps them, answers the same, and takes nothing that is damaged or of other weights."""
import glob
import os
import shutil

import harness
from harness import good, mekik, need, scratch

WORDS = ["--tokens", "1,2,3,400,5", "--json", "--log-level", "info"]


def logits(model, cache, *more, code=0):
    env = harness.environment(XDG_CACHE_HOME=cache)
    done = mekik("logits", model, *WORDS, *more, env=env)
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def kept(cache):
    return glob.glob(os.path.join(cache, "mekik", "*.packed"))


def the_kept(cache, said):
    paths = kept(cache)
    assert len(paths) == 1, (paths, said)
    return paths[0]


def second_start_maps():
    model = need(harness.SMOLLM2, "SmolLM2")
    with scratch() as cache:
        first, said = logits(model, cache)
        path = the_kept(cache, said)
        assert f"the packed weights are kept in {path}" in said, said
        second, said = logits(model, cache)
        assert f"the weights are mapped from {path}" in said, said
        assert first == second
        exact, said = logits(model, cache, "--set", "backend.math=exact")
        assert exact != first
        again, _ = logits(model, cache, "--set", "backend.math=exact")
        assert exact == again


def damaged_is_packed_again():
    model = need(harness.SMOLLM2, "SmolLM2")
    with scratch() as cache:
        first, said = logits(model, cache)
        path = the_kept(cache, said)
        size = os.path.getsize(path)
        for cut in (True, False):
            with open(path, "r+b") as file:
                if cut:
                    file.truncate(size // 2)
                else:
                    file.seek(size // 2)
                    byte = file.read(1)
                    file.seek(size // 2)
                    file.write(bytes([byte[0] ^ 1]))
            answer, said = logits(model, cache)
            assert answer == first
            assert f"{path}: is damaged; the weights are packed again" in said, said
            assert os.path.getsize(path) == size
        _, said = logits(model, cache)
        assert "the weights are mapped" in said, said


def another_file_is_another():
    source = need(harness.SMOLLM2, "SmolLM2")
    with scratch() as cache:
        model = os.path.join(cache, "model.gguf")
        shutil.copy(source, model)
        first, _ = logits(model, cache)
        # Some weights, with the size and the modification time that the file had.
        times = os.stat(model)
        with open(model, "r+b") as file:
            file.seek(times.st_size // 2)
            file.write(b"\x11" * (1 << 20))
        os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
        other, said = logits(model, cache)
        assert "mapped" not in said, said
        assert other != first
        assert len(kept(cache)) == 1


def asked_not_to():
    model = need(harness.SMOLLM2, "SmolLM2")
    with scratch() as cache:
        _, said = logits(model, cache, "--set", "model.prepared=false")
        assert "kept" not in said and not os.path.exists(os.path.join(cache, "mekik")), said
        folder = os.path.join(cache, "elsewhere")
        logits(model, cache, "--set", f"model.prepared_folder={folder}")
        assert len(os.listdir(folder)) == 1 and not kept(cache)
        blocked = harness.write(cache, "file", "no folder")
        answer, said = logits(model, cache, "--set", f"model.prepared_folder={blocked}/in")
        assert answer and "weights are not kept for the next start" in said and "model.prepared = false" in said, said


def small_models_are_not_kept():
    with scratch() as cache:
        good(mekik("run", harness.tiny(cache), "--tokens", "1,2", "--max-tokens", "2", "--json", env=harness.environment(XDG_CACHE_HOME=cache)))
        assert not os.path.exists(os.path.join(cache, "mekik"))


if __name__ == "__main__":
    harness.main([
        ("the second start maps what the first packed", second_start_maps),
        ("a damaged file is packed again", damaged_is_packed_again),
        ("a model that changed is packed again", another_file_is_another),
        ("prepared and prepared_folder are followed", asked_not_to),
        ("small models are not kept", small_models_are_not_kept),
    ])
