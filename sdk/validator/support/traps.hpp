// Turns a crash in the plugin into a sentence.
#pragma once

namespace mekik::validate {

void install_traps();
// Each thread that calls the plugin has a stack of its own for signals, so that a stack overflow can be told, too.
void signal_stack();

}  // namespace mekik::validate
