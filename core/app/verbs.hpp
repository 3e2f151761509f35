// The verbs, one file each; the table that main() looks them up in.
#pragma once
#include <vector>

#include "app/command_line.hpp"

namespace mekik::app {

extern const Verb kRun, kChat, kServe, kCheck, kPlugins, kDescribe, kSchema, kModel, kTokenize, kDetokenize, kTemplate, kLogits, kEmbed,
    kConvert, kSimulate, kBench;

inline const std::vector<const Verb*>& verbs() {
  static const std::vector<const Verb*> all{&kRun,      &kChat,       &kServe,    &kCheck,  &kPlugins, &kDescribe, &kSchema,   &kModel,
                                            &kTokenize, &kDetokenize, &kTemplate, &kLogits, &kEmbed,   &kConvert,  &kSimulate, &kBench};
  return all;
}

}  // namespace mekik::app
