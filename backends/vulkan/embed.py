#!/usr/bin/env python3
"""Writes compiled shaders as one C++ file: embed.py OUT.cpp NAME=FILE.spv ..."""
import struct
import sys

with open(sys.argv[1], "w") as out:
    out.write('#include "device.hpp"\n\nnamespace mekik::vulkan {\n\nnamespace {\n')
    names = []
    for item in sys.argv[2:]:
        name, path = item.split("=", 1)
        with open(path, "rb") as file:
            data = file.read()
        words = struct.unpack(f"<{len(data) // 4}I", data)
        out.write(f"constexpr std::uint32_t k_{name}[] = {{{', '.join(map(hex, words))}}};\n")
        names.append(name)
    out.write("}  // namespace\n\nconst Shader kShaders[] = {\n")
    out.writelines(f'    {{"{name}", k_{name}, sizeof k_{name}}},\n' for name in names)
    out.write("};\nconst std::size_t kShaderCount = sizeof kShaders / sizeof kShaders[0];\n\n}  // namespace mekik::vulkan\n")
