#!/usr/bin/env python3
"""The installed tree: it runs after it was moved, knows nothing of where it was built, and others can build plugins with it (B147).

    installed.py BUILD-OF-CMAKE
"""
import json
import os
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness
from harness import good, mekik
from tree import CMAKE, Installed, run

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(external LANGUAGES CXX)
find_package(mekik 0.1 REQUIRED)
mekik_add_plugin(sampler_first first.cpp)
add_executable(show show.cpp)
target_link_libraries(show PRIVATE mekik::sdk)
"""
EXTERNAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "external")


def hidden(words, cwd):
    """Runs words with the source and the build tree out of sight, where this machine lets one do that."""
    hide = " && ".join(f"mount -t tmpfs none '{folder}'" for folder in dict.fromkeys((harness.SOURCE, harness.BUILD)) if os.path.isdir(folder))
    # The first mount may hide the folder of the second.
    script = hide.replace(" && mount", "; mount") + '; exec "$@"'
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", script, "sh", *words]


def can_hide():
    return shutil.which("unshare") and subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True).returncode == 0


def moved():
    with Installed() as tree:
        if not can_hide():
            raise harness.Skip("unshare --mount is not allowed here")
        work = os.path.join(os.path.dirname(tree.prefix), "work")
        os.mkdir(work)
        harness.tiny(work)
        env = harness.environment(LD_LIBRARY_PATH=None)

        def ask(*words):
            done = subprocess.run(hidden([tree.program, *words], work), cwd=work, env=env, capture_output=True, text=True, errors="replace", timeout=60)
            assert done.returncode == 0, done
            return done.stdout

        assert os.path.exists(harness.PROGRAM)
        seen = subprocess.run(hidden(["test", "-e", harness.PROGRAM], work), cwd=work)
        assert seen.returncode != 0, "the build tree is still in sight"
        assert ask("--version").count("error") == 0
        components = json.loads(ask("plugins", "--json"))["components"]
        assert len(components) > 10 and all(c["library"].startswith(tree.path("lib/mekik")) for c in components), components
        pipeline = tree.path("share/mekik/pipelines/chat.toml")
        shown = ask("check", pipeline, "--set", f"model.path={work}/tiny.gguf", "--print-config")
        assert f"# {tree.path('share/mekik/pipelines/base.toml')}:" in shown, shown
        answer = ask("run", pipeline, "--set", f"model.path={work}/tiny.gguf", "-p", "hi", "--max-tokens", "4", "--json")
        assert json.loads(answer)["finish_reason"] in ("length", "stop"), answer


def nothing_of_the_build():
    """No file of the installed tree names the source or the build tree, by RPATH or otherwise."""
    with Installed() as tree:
        count = 0
        for folder, _, files in os.walk(tree.prefix):
            for name in files:
                count += 1
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                for place in (harness.BUILD, harness.SOURCE):
                    assert place.encode() + b"/" not in content and place.encode() + b"\0" not in content, f"{os.path.join(folder, name)} names {place}"
        assert count > 50, count
        wanted = {"bin/mekik", "lib/mekik/backend_cpu.so", "share/mekik/architectures/llama.toml", "share/mekik/pipelines/chat.toml",
                  "include/mekik/plugin.h", "lib/cmake/mekik/mekik-config.cmake", "lib/pkgconfig/mekik.pc", "share/doc/mekik/LICENSE"}
        absent = [name for name in wanted if not os.path.exists(tree.path(name))]
        assert not absent, absent


def compilers():
    return [name for name in ("g++", "clang++") if shutil.which(name)]


def external_project():
    """B147: a few lines of CMake find the package, build a plugin with it, and the program runs that."""
    with Installed() as tree:
        folder = os.path.dirname(tree.prefix)
        project = os.path.join(folder, "external")
        shutil.copytree(EXTERNAL, project)
        harness.write(project, "CMakeLists.txt", PROJECT)
        for compiler in compilers():
            build = os.path.join(folder, "build-" + compiler)
            run(CMAKE, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={tree.prefix}", f"-DCMAKE_CXX_COMPILER={compiler}")
            run(CMAKE, "--build", build)
            assert run(os.path.join(build, "show")).startswith("0.1")
            pipeline = harness.write(folder, "p.toml", '[model]\npath = "tiny.gguf"\n[[sampler]]\nuse = "first"\nkeep = 66\n')
            harness.tiny(folder)
            env = harness.environment(MEKIK_PLUGIN_PATH=build)
            made = json.loads(good(mekik("run", pipeline, "--tokens", "1", "--max-tokens", "3", "--json", program=tree.program, env=env)))
            assert made["tokens"] == [66, 66, 66], made


def pkg_config():
    """B147: pkg-config agrees with the package, and each header stands alone."""
    if not shutil.which("pkg-config"):
        raise harness.Skip("pkg-config is not installed")
    with Installed() as tree:
        env = {**os.environ, "PKG_CONFIG_PATH": tree.path("lib/pkgconfig")}
        folder = os.path.dirname(tree.prefix)
        assert run("pkg-config", "--modversion", "mekik", env=env).startswith("0.1")
        # It escapes spaces, as a shell wants them.
        include = shlex.split(run("pkg-config", "--variable=includedir", "mekik", env=env))[0]
        assert shlex.split(run("pkg-config", "--cflags", "mekik", env=env)) == [f"-I{include}"]
        assert os.path.samefile(include, tree.path("include")), include
        headers = sorted(name for name in os.listdir(os.path.join(include, "mekik")) if name.endswith((".h", ".hpp")))
        assert "plugin.h" in headers and "plugin.hpp" in headers
        for compiler in compilers():
            for header in headers:
                for language, standard in ([("c", "c11"), ("c++", "c++20")] if header.endswith(".h") else [("c++", "c++20")]):
                    source = harness.write(folder, "one", f"#include <mekik/{header}>\nint one;\n")
                    run(compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-x", language, f"-std={standard}", f"-I{include}", source)


CHECKS = [moved, nothing_of_the_build, external_project, pkg_config]
harness.main([(check.__name__, check) for check in CHECKS])
