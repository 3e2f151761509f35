#!/usr/bin/env python3
"""The Debian packages: what is in them, what they depend on, and, with --clean-root, that they install on a Debian that has nothing else, and
answer there.

    packages.py BUILD-OF-CMAKE [--clean-root]
"""
import json
import os
import re
import shutil
import subprocess
import sys

from tree import CMAKE, run
import harness
from serving import Server

NAMES = {"mekik", "mekik-plugins", "mekik-dev"}
SUITE = "bookworm"


def made(folder):
    """Package name -> file, as CPack makes them of this build."""
    cpack = os.path.join(os.path.dirname(CMAKE), "cpack") if os.path.dirname(CMAKE) else "cpack"
    if not shutil.which("dpkg-shlibdeps") or not shutil.which("dpkg-deb"):
        raise harness.Skip("dpkg-dev is not installed")
    run(cpack, "--config", os.path.join(harness.BUILD, "CPackConfig.cmake"), "-B", folder)
    out = {}
    for name in os.listdir(folder):
        if name.endswith(".deb"):
            path = os.path.join(folder, name)
            out[run("dpkg-deb", "--field", path, "Package").strip()] = path
    return out


def contents(path):
    """Path in the package -> its mode and owner."""
    out = {}
    for line in run("dpkg-deb", "--contents", path).splitlines():
        mode, owner, _, _, _, name = line.split(None, 5)
        out[name.removeprefix(".").rstrip("/")] = (mode, owner)
    return out


def field(path, name):
    return run("dpkg-deb", "--field", path, name).strip()


def whole(packages):
    assert set(packages) == NAMES, packages
    version = field(packages["mekik"], "Version")
    assert re.fullmatch(r"0\.\d+\.\d+", version), version
    files = {name: contents(path) for name, path in packages.items()}
    wanted = {
        "mekik": ["/usr/bin/mekik", "/usr/share/man/man1/mekik.1", "/usr/share/man/man1/mekik-run.1", "/usr/share/mekik/pipelines/chat.toml",
                  "/usr/share/mekik/architectures/llama.toml", "/usr/share/mekik/formats", "/usr/share/mekik/scenarios/day.toml",
                  "/usr/share/doc/mekik/copyright", "/usr/share/doc/mekik/README.md", "/usr/share/doc/mekik/writing-a-plugin.md",
                  "/usr/share/doc/mekik/reference/options.md"],
        "mekik-plugins": ["/usr/lib/mekik/backend_cpu.so", "/usr/lib/mekik/scheduler_continuous.so", "/usr/share/doc/mekik-plugins/copyright"],
        "mekik-dev": ["/usr/include/mekik/plugin.h", "/usr/include/mekik/plugin.hpp", "/usr/include/mekik/reference/backend/device.hpp",
                      "/usr/lib/libmekik_reference.a", "/usr/lib/cmake/mekik-sdk/mekik-sdk-config.cmake", "/usr/lib/pkgconfig/mekik.pc",
                      "/usr/share/mekik/template/CMakeLists.txt", "/usr/share/mekik/template/rust/build.sh", "/usr/share/doc/mekik-dev/copyright"],
    }
    for package, paths in wanted.items():
        absent = [path for path in paths if path not in files[package]]
        assert not absent, f"{package} lacks {absent}"
    seen = {}
    for package, paths in files.items():
        for path, (mode, owner) in paths.items():
            assert owner == "root/root" and mode[8] != "w" and mode[5] != "w", f"{package}: {path} is {mode} {owner}"
            if not mode.startswith("d"):
                assert path not in seen, f"{path} is in {package} and {seen[path]}"
                seen[path] = package
    built = {name for name in os.listdir(os.path.join(harness.BUILD, "lib", "mekik")) if name.endswith(".so")}
    packed = {os.path.basename(path) for path in files["mekik-plugins"] if path.endswith(".so")}
    assert packed == built, packed ^ built


def dependencies(packages):
    version = field(packages["mekik"], "Version")
    depends = field(packages["mekik"], "Depends")
    assert f"mekik-plugins (= {version})" in depends, depends
    for library in ("libc6 (>=", "libstdc++6 (>=", "libboost-json1", "libssl3"):
        assert library in depends, f"mekik does not depend on {library}: {depends}"
    assert "libc6 (>=" in field(packages["mekik-plugins"], "Depends")
    assert "libssl-dev" in field(packages["mekik-dev"], "Recommends")
    for path in packages.values():
        assert field(path, "Architecture") != "all" and len(field(path, "Description").splitlines()) >= 3, path


def man_pages(packages):
    """One for each verb; every line of its help is in it."""
    verbs = re.findall(r"^  (\w+) ", harness.good(harness.mekik("--help")), re.MULTILINE)
    assert len(verbs) > 10
    man = os.path.join(harness.BUILD, "share", "man", "man1")
    assert sorted(os.listdir(man)) == sorted(["mekik.1", *(f"mekik-{verb}.1" for verb in verbs)]), os.listdir(man)
    for verb in verbs:
        with open(os.path.join(man, f"mekik-{verb}.1"), encoding="utf-8") as file:
            page = file.read().replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
        for line in harness.good(harness.mekik(verb, "--help")).splitlines():
            said = line.removeprefix("usage: ").rstrip()
            assert said in ("options:", "example:", "examples:") or said in page, f"mekik-{verb}.1 lacks: {line}"


def bootstrap(root, debs):
    """A minimal Debian with the packages in it, installed by apt with what they depend on."""
    tool = next((t for t in ("mmdebstrap", "debootstrap") if shutil.which(t)), None)
    if tool is None or os.geteuid() != 0:
        raise harness.Skip("neither mmdebstrap nor debootstrap, or not root")
    command = [tool, "--variant=minbase", SUITE, root]
    if tool == "mmdebstrap":
        command = [tool, "--variant=apt", "--mode=root", SUITE, root]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        raise harness.Skip(f"{tool} did not get a Debian: {done.stderr[-300:]}")
    os.makedirs(os.path.join(root, "debs"))
    for deb in debs:
        shutil.copy(deb, os.path.join(root, "debs"))
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc", "resolv.conf"))
    inside(root, "apt-get update")
    inside(root, "apt-get install -y --no-install-recommends /debs/*.deb")


ENTER = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'  # programs find themselves through /proc


def inside(root, command):
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/", **
           {k: v for k, v in os.environ.items() if k.lower().endswith("_proxy")}}
    done = subprocess.run(["unshare", "--mount", "sh", "-c", ENTER, root, "sh", "-c", command], capture_output=True, text=True, timeout=600, env=env)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def answers(root):
    assert "mekik" in inside(root, "mekik --version")
    listed = json.loads(inside(root, "mekik plugins --json"))
    assert len(listed["components"]) > 30 and not listed["problems"], listed["problems"]
    harness.tiny(os.path.join(root, "srv"), "tiny.gguf")
    words = "mekik run /srv/tiny.gguf -p hi --max-tokens 4 --temperature 0 --json"
    tokens = json.loads(inside(root, words))["tokens"]
    here = json.loads(harness.good(harness.mekik("run", os.path.join(root, "srv", "tiny.gguf"), *words.split()[3:])))["tokens"]
    assert tokens == here, (tokens, here)
    inside(root, "test -f /usr/share/man/man1/mekik.1 -o -f /usr/share/man/man1/mekik.1.gz")
    program = harness.write(os.path.dirname(root), "in-root", f"#!/bin/sh\nexec unshare --mount sh -c '{ENTER}' '{root}' mekik \"$@\"\n")
    os.chmod(program, 0o755)
    with Server("/usr/share/mekik/pipelines/chat.toml", "--set", "model.path=/srv/tiny.gguf", program=program) as server:
        answer = json.loads(server.ask("/v1/completions", {"model": "smollm2-135m-instruct", "prompt": "hi", "max_tokens": 3}))
        assert answer["usage"]["completion_tokens"] == 3, answer
        assert server.end()[0] == 0, server.log


def clean_root():
    with harness.scratch() as folder:
        packages = made(os.path.join(folder, "packages"))
        root = os.path.join(folder, "root")
        bootstrap(root, packages.values())
        answers(root)


def main():
    if "--clean-root" in sys.argv:
        return harness.main([("installs on a clean Debian, and answers there", clean_root)])
    with harness.scratch() as folder:
        packages = {}
        checks = [("they are made", lambda: packages.update(made(folder)))]
        checks += [(check.__name__, lambda c=check: c(packages)) for check in (whole, dependencies, man_pages)]
        harness.main(checks)


main()
