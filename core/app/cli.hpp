// The command line: one verb per thing that people do.
#pragma once

namespace mekik::app {

// Exit code: 0, 1 (something that exists cannot be used, or the run failed), 2 (the command line or the pipeline is wrong).
int main(int argc, char** argv);

}  // namespace mekik::app
