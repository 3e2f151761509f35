#include "app/cli.hpp"

int main(int argc, char** argv) { return mekik::app::main(argc, argv); }
