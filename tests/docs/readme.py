#!/usr/bin/env python3
"""Runs every command of README.md, and compares what the README shows with what happens; "..." there stands for anything.

A command is a line of a code block that begins with "$ ", or words between backquotes that begin with "mekik " or "./". Each has a row in
COMMANDS below, or this test fails: so none is forgotten. The rows say how a command is run where that needs more than running it.
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "app"))
import harness
from serving import Server

README = os.path.join(harness.SOURCE, "README.md")


def readme():
    with open(README, encoding="utf-8") as file:
        return file.read()


def shown_commands(text):
    """(command, the output shown below it) of the code blocks."""
    blocks, found = re.findall(r"(?:^    .*\n|^\n)+", text, re.MULTILINE), []
    for block in blocks:
        for part in re.split(r"^    \$ ", block, flags=re.MULTILINE)[1:]:
            lines = [line[4:] if line.startswith("    ") else line for line in part.rstrip("\n").split("\n")]
            # A quote that is open at the end of a line goes on in the next one.
            end = next(n for n in range(1, len(lines) + 1) if "\n".join(lines[:n]).count("'") % 2 == 0)
            found.append(("\n".join(lines[:end]), "\n".join(lines[end:]).strip()))
    return found


def said_commands(text):
    """The commands between backquotes, outside of code blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^    .*$", "", prose, flags=re.MULTILINE)
    return sorted({words for words in re.findall(r"`([^`]+)`", prose) if words.startswith(("mekik ", "./"))})


def same(expected, got):
    """Compares words; lines may be broken elsewhere."""
    pattern = r".*".join(re.escape(" ".join(part.split())) for part in expected.split("..."))
    return re.fullmatch(pattern, " ".join(got.split()), re.DOTALL) is not None


def run(words, cwd=harness.SOURCE, shell=False):
    path = os.path.dirname(harness.PROGRAM) + os.pathsep + os.environ["PATH"]
    done = subprocess.run(words, cwd=cwd, shell=shell, executable="/bin/bash" if shell else None, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=300, env=harness.environment(PATH=path))
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def need_demo():
    """The demo builds into build/release and fetches its model; a test does neither."""
    harness.need(harness.SMOLLM2, "SmolLM2")
    if os.path.realpath(harness.BUILD) != os.path.realpath(os.path.join(harness.SOURCE, "build", "release")):
        raise harness.Skip("the demo runs build/release, and this is another build")


def demo(command, output):
    need_demo()
    got = run(command, shell=True)
    assert same(output, got), f"shown:\n{output}\ngot:\n{got}"


def second_start_is_quick():
    """With everything in place the demo's first word comes within 2 seconds, on a machine that has nothing else to do."""
    need_demo()
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        with subprocess.Popen(["./demo.sh", "Hi"], cwd=harness.SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              env=harness.environment()) as process:
            assert process.stdout.read(1)
            seconds.append(time.monotonic() - start)
            process.stdout.read()
    share = max(1, os.getloadavg()[0] / os.cpu_count())
    print(f"        {min(seconds):.2f} s, {share:.1f} processes want each core")
    assert min(seconds) < 2 * share, (seconds, share)


def ask_server(command, output):
    """curl asks the server that the line above it starts; here on a free port."""
    pipeline = os.path.join(harness.SOURCE, "pipelines", "chat.toml")
    harness.need(harness.SMOLLM2, "SmolLM2")
    with Server(pipeline) as server:
        got = run(command.replace("http://127.0.0.1:8080", server.base), shell=True)
        # The README shows where the answer begins.
        assert same(re.sub(r"\s*\n\s*", "", output), re.sub(r"\n", "", got)), f"shown:\n{output}\ngot:\n{got}"


def by_itself(command, output):
    """This test runs inside of it."""
    assert os.access(os.path.join(harness.SOURCE, command), os.X_OK), command
    assert "100% tests passed" in output


def serve_demo(command, output):
    """The script's last line is what is started; what it starts is tested as a pipeline."""
    with open(os.path.join(harness.SOURCE, "demo.sh")) as file:
        assert "exec build/release/bin/mekik serve pipelines/chat.toml" in file.read()


def plain(command, output):
    words = shlex.split(command)
    assert run(words), f"{command} says nothing"


def shown_only(words):
    def check(command, output):
        harness.need(harness.SMOLLM2, "SmolLM2")
        assert run(words)
    return check


def on_model(command, output):
    harness.need(harness.SMOLLM2, "SmolLM2")
    brief = [] if "--max-tokens" in command else ["--max-tokens", "4"]
    assert run(shlex.split(command.replace("model.gguf", harness.SMOLLM2)) + brief).strip()


def convert(command, output):
    folder = os.path.join(harness.SOURCE, "tests", "models", "tiny", "llama-plain")
    with tempfile.TemporaryDirectory() as scratch:
        assert run(shlex.split(command.replace("FOLDER", folder).replace("OUT.gguf", os.path.join(scratch, "out.gguf"))))


def bench(command, output):
    """As written, but for how long."""
    harness.need(harness.SMOLLM2, "SmolLM2")
    shown = run([*shlex.split(command.replace("model.gguf", harness.SMOLLM2).replace("512", "64").replace("128", "8").replace("4096", "256")),
                 "--runs", "1"])
    assert "decode 8 at 256, 8 sequences" in shown, shown


CHAT = ["mekik", "run", "pipelines/chat.toml", "-p", "Hi"]
COMMANDS = {
    './demo.sh "Why is the sky blue?"': demo,
    "curl -s http://127.0.0.1:8080/v1/chat/completions": ask_server,
    "./test.sh": by_itself,
    "./demo.sh --serve": serve_demo,
    "mekik check": shown_only(["mekik", "check", "pipelines/chat.toml"]),
    "mekik plugins": plain,
    "mekik describe backend/cpu": plain,
    "mekik schema": plain,
    "mekik simulate configs/scenarios/agents.toml": plain,
    "mekik bench model.gguf --prefill 512 --decode 128 --depth 0,4096 --sequences 1,8": bench,
    "mekik convert FOLDER --to gguf --type q8_0 -o OUT.gguf": convert,
    "mekik tokenize --pieces": shown_only(["mekik", "tokenize", "--help"]),
    "mekik run": shown_only(["mekik", "run", "--help"]),
    "mekik run ... --print-config": shown_only([*CHAT, "--print-config"]),
    'mekik run model.gguf -p "Hi"': on_model,
    "mekik run model.gguf --tokens 1,2,3 --max-tokens 1": on_model,
}


def row_of(command):
    """The whole command, or what it begins with."""
    found = [key for key in COMMANDS if command == key or command.startswith(key + " -")]
    assert len(found) == 1, f"README.md has a command that tests/docs/readme.py does not know: {command}"
    return found[0]


def every_row_is_used():
    used = {row_of(command) for command, _ in shown_commands(readme())} | {row_of(command) for command in said_commands(readme())}
    assert used == set(COMMANDS), f"README.md has no longer: {set(COMMANDS) - used}"


def verbs_are_listed():
    """The list of verbs is the program's."""
    listed = re.search(r"## The command line\n(.*?); each has", readme(), re.DOTALL)[1]
    theirs = re.findall(r"^  (\w+) ", harness.good(harness.mekik("--help")), re.MULTILINE)
    assert re.findall(r"`(?:mekik )?(\w+)`", listed) == theirs, (listed, theirs)


def pipeline_as_shown():
    """The pipeline that the README shows is chat.toml on base.toml."""
    shown = tomllib.loads(re.search(r"```toml\n(.*?)```", readme(), re.DOTALL)[1])
    merged = {}
    for name in ("base.toml", "chat.toml"):
        with open(os.path.join(harness.SOURCE, "pipelines", name), "rb") as file:
            for table, value in tomllib.load(file).items():
                merged[table] = {**merged.get(table, {}), **value} if isinstance(value, dict) else value
    del merged["pipeline"]
    assert shown == merged, f"shown {shown}\nfiles {merged}"


def override_as_said():
    """--set as the README writes it."""
    override = re.search(r"`--set (\S+)`", readme())[1]
    shown = run(["mekik", "check", "pipelines/chat.toml", "--set", override, "--print-config"]) if os.path.exists(harness.SMOLLM2) else ""
    if not shown:
        raise harness.Skip("SmolLM2 is not there")
    key, value = override.split("=")
    assert re.search(rf"^{key.split('.')[-1]} = {value}  # --set:", shown, re.MULTILINE), shown


def links():
    """Every relative link leads somewhere."""
    for page in ("README.md", "CONTRIBUTING.md", *glob.glob("docs/**/*.md", root_dir=harness.SOURCE, recursive=True)):
        with open(os.path.join(harness.SOURCE, page), encoding="utf-8") as file:
            text = re.sub(r"^```.*?^```$|`[^`\n]+`", "", file.read(), flags=re.MULTILINE | re.DOTALL)  # C++ has lambdas
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert os.path.exists(os.path.join(harness.SOURCE, os.path.dirname(page), target)), f"{page} links to {target}"


def main():
    checks = [(command.split("\n")[0], lambda c=command, o=output: COMMANDS[row_of(c)](c, o)) for command, output in shown_commands(readme())]
    checks += [(command, lambda c=command: COMMANDS[row_of(c)](c, "")) for command in said_commands(readme())]
    checks += [(check.__name__, check) for check in (second_start_is_quick, every_row_is_used, verbs_are_listed, pipeline_as_shown, override_as_said, links)]
    harness.main(checks)


main()
