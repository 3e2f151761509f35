// mekik/plugin.hpp - header-only C++20 comfort over mekik/plugin.h. Nothing here crosses the binary boundary.
//
// A plugin is one shared library: classes for its components, and at the end
//   MEKIK_PLUGIN("org.example.mine", "1.0", mekik::scheduler<Mine>())
// A class of any kind has static name ([a-z0-9_]+, what a pipeline writes), version, summary (one sentence), and, where it has options,
//   static constexpr std::array options{mekik::opt::integer("most", "8", 1, 64, "What it is for, in one sentence.")};
// What else it has stands above the function of its kind: scheduler, sampler, cache, drafter, sink (policies.hpp), loader, scheme
// (files.hpp), backend (backend.hpp). All of these throw mekik::Error (or anything) where they may fail: guard() turns that into a
// status and the text of mekik_host.fail. What may not fail, because its table's function returns no status, must not throw.
#pragma once
#include <mekik/backend.hpp>
#include <mekik/base.hpp>
#include <mekik/files.hpp>
#include <mekik/policies.hpp>
