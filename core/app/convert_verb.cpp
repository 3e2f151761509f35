// convert: a model of one format written in another.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "app/session.hpp"
#include "app/verbs.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "convert/convert.hpp"
#include "convert/types.hpp"

namespace mekik::app {

namespace {

volatile std::sig_atomic_t stopped = 0;

int run_convert(const Arguments& arguments) {
  Session session;
  convert::Request request;
  request.to = arguments.text("to");
  if (request.to != "gguf" && request.to != "safetensors") throw misused("--to " + request.to + ": choose gguf or safetensors");
  const bool gguf = request.to == "gguf";
  if (arguments.has("type")) {
    request.type = arguments.text("type");
    const convert::Type* type = convert::find_type(request.type);
    if (type == nullptr || (!gguf && type->num == 0))
      throw misused("--type " + mekik::quoted(request.type) + ": choose one that " + request.to +
                    " is written in: " + convert::type_names(gguf));
  }
  request.out = arguments.text("output");
  if (request.out.empty()) throw misused("--output is empty; name a file, or for safetensors a folder");
  if (request.out == "-") throw misused("--output -: a model is not written to standard output; name a file, or for safetensors a folder");
  if (gguf && arguments.has("max-shard-mib")) throw misused("--max-shard-mib is for --to safetensors; a GGUF file is written whole");
  if (const auto size = whole_number(arguments, "max-shard-mib", 1, std::uint64_t{1} << 30)) request.shard_bytes = *size << 20;
  request.page = session.page_of_file();
  request.stopped = [] { return stopped != 0; };
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { stopped = 1; });
  const auto file = session.open_file(arguments, arguments.operands[0]);
  const convert::Report report = need(convert::convert(session.registry(), session.pages_of_file(), *file, request));
  if (arguments.flag("json")) {
    const json::object out{{"path", request.out.string()},
                           {"tensors", report.tensors},
                           {"bytes", report.bytes},
                           {"notes", json::array(report.notes.begin(), report.notes.end())}};
    std::puts(json::serialize(out).c_str());
    return kSuccess;
  }
  std::printf("%s: %llu tensors, %s\n", request.out.c_str(), static_cast<unsigned long long>(report.tensors),
              human_bytes(report.bytes).c_str());
  for (const std::string& note : report.notes) std::printf("  note: %s\n", note.c_str());
  return kSuccess;
}

}  // namespace

const Verb kConvert{"convert",
                    "MODEL",
                    "A model in another format: a folder of safetensors as GGUF, or back.",
                    "mekik convert Qwen3-0.6B --to gguf --type q8_0 -o qwen3.gguf",
                    [](po::options_description& o) {
                      o.add_options()                                                          //
                          ("to", po::value<std::string>()->required(), "gguf or safetensors")  //
                          ("type", po::value<std::string>(),
                           "of the matrices: f32, f16, bf16, q8_0, q4_0, ...; default: as they are, blocks as f32")                     //
                          ("output,o", po::value<std::string>()->required(), "a file, or for safetensors a folder; must not be there")  //
                          ("max-shard-mib", po::value<std::string>(), "of one safetensors file; default 4768, which is 5 GB")           //
                          ("json", po::bool_switch(), "what was written, as JSON");
                    },
                    1,
                    1,
                    true,
                    run_convert};

}  // namespace mekik::app
