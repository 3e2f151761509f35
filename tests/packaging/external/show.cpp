// A program that only reads the headers.
#include <mekik/plugin.h>
#include <mekik/version.h>

#include <cstdio>

int main() { std::printf("%s %d\n", MEKIK_VERSION, MEKIK_ABI_MINOR); }
