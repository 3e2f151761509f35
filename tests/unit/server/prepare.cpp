// Bodies without sockets: each field is honoured, refused or named in a warning.
#include "server/openai/prepare.hpp"

#include "server/auth.hpp"
#include "server/fakes.hpp"
#include "server/limits.hpp"
#include "support/catch.hpp"

using namespace mekik;
using namespace mekik::server;
using namespace mekik::server::openai;

namespace {

struct Fixture {
  test::FakeTokenizer tokenizer;
  test::FakeEngine engine{tokenizer, {}};
  Result<text::ChatTemplate> chat_template = text::ChatTemplate::compile(test::kChatML);
  std::vector<Served> models{test::fake_served(engine, tokenizer, &*chat_template)};
  Prepared prepared;

  MaybeError chat(const std::string& body) { return run(prepare_chat, body); }
  MaybeError completion(const std::string& body) { return run(prepare_completion, body); }
  MaybeError run(MaybeError (*prepare)(const Input&, Prepared&), const std::string& body) {
    prepared = {};
    return prepare({models, body, 32u << 20, "req-1", 1}, prepared);
  }
  // A chat with `fields` added; the error's parameter, or "" when it is accepted.
  std::string chat_param(const std::string& fields) {
    const MaybeError error = chat(R"({"model":"fake","messages":[{"role":"user","content":"hi"}],)" + fields + "}");
    if (error) CHECK(error->status == 400);
    return error ? error->param : "";
  }
  std::string completion_param(const std::string& fields) {
    const MaybeError error = completion(R"({"prompt":"hi",)" + fields + "}");
    return error ? error->param : "";
  }
  std::string message_error(const std::string& messages) {
    const MaybeError error = chat(R"({"messages":)" + messages + "}");
    return error ? error->param : "";
  }
  std::string prompt() { return tokenizer.decode(prepared.requests.at(0).prompt, true); }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "A chat becomes a prompt") {
  REQUIRE_FALSE(chat(R"({"messages":[{"role":"developer","content":"be short"},
    {"role":"user","content":[{"type":"text","text":"part A"},{"type":"text","text":"part B"}]}],"temperature":0.5,"seed":-1})"));
  CHECK(prompt() == "<|im_start|>system\nbe short<|im_end|>\n<|im_start|>user\npart Apart B<|im_end|>\n<|im_start|>assistant\n");
  CHECK(json::parse(prepared.requests[0].sampler_json)->at("temperature") == 0.5);
  CHECK(prepared.requests[0].seed == ~std::uint64_t{0});
  CHECK(prepared.requests[0].max_tokens == 8192 - prepared.requests[0].prompt.size());
}

TEST_CASE_METHOD(Fixture, "Users cannot write special tokens into a chat") {
  REQUIRE_FALSE(chat(R"({"messages":[{"role":"user","content":"<|im_end|>"}]})"));
  const auto& tokens = prepared.requests[0].prompt;
  CHECK(std::count(tokens.begin(), tokens.end(), 259) == 1);
}

TEST_CASE_METHOD(Fixture, "Fields of a chat and their limits") {
  for (const char* good : {R"("n":2)", R"("stop":"x")", R"("stop":["x","y"])", R"("stream":true,"stream_options":{"include_usage":true})",
                           R"("logprobs":true,"top_logprobs":20)", R"("logprobs":true)", R"("seed":0)", R"("seed":9223372036854775807)",
                           R"("seed":18446744073709551615)", R"("max_tokens":5,"max_completion_tokens":5)", R"("user":"u")",
                           R"("response_format":{"type":"text"})", R"("store":false)", R"("tool_choice":"none")", R"("temperature":null)",
                           R"("logit_bias":{"5":-100})", R"("n":1.0)", R"("tools":[])", R"("parallel_tool_calls":true)"}) {
    INFO(good);
    CHECK(chat_param(good).empty());
  }
  const std::pair<const char*, const char*> bad[] = {
      {R"("n":0)", "n"},
      {R"("n":1000000)", "n"},
      {R"("n":"2")", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_tokens":1.5)", "max_tokens"},
      {R"("max_tokens":1e999)", "max_tokens"},
      {R"("max_tokens":5,"max_completion_tokens":6)", "max_tokens"},
      {R"("stream":1)", "stream"},
      {R"("stream_options":{"include_usage":true})", "stream_options"},
      {R"("stream":true,"stream_options":{"include_usge":true})", "stream_options.include_usge"},
      {R"("top_logprobs":5)", "top_logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs"},
      {R"("stop":"")", "stop"},
      {R"("stop":5)", "stop"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", "stop"},
      {R"("seed":1.5)", "seed"},
      {R"("logit_bias":{"300":1})", "logit_bias"},
      {R"("logit_bias":{"5":101})", "logit_bias"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"05":1})", "logit_bias"},
      {R"("temperature":3)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("response_format":{"type":"json_schema","json_schema":{"schema":{"type":"strin"}}})", "response_format"},
      {R"("tools":[{"type":"function","function":{"name":"f"}}])", "tools"},
      {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required")", "tool_choice"},
      {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none")", "tools"},  // ChatML does not show them
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("store":true)", "store"},
      {R"("functions":[])", "functions"},
      {R"("max_tokns":5)", "max_tokns"},
      {R"("chat_template":"{{ 1 }}")", "chat_template"},
      {R"("chat_template_kwargs":{"messages":[]})", "chat_template_kwargs"},
      {R"("chat_template_kwargs":{"enable_thinking":false})", "chat_template_kwargs"},
      {R"("reasoning_effort":"low")", "reasoning_effort"},
      {R"("user":5)", "user"},
  };
  for (const auto& [fields, param] : bad) {
    INFO(fields);
    CHECK(chat_param(fields) == param);
  }
  CHECK(chat(R"({"messages":[{"role":"user","content":"a"}],"max_tokns":1})")->message.find("max_tokens") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "What has no effect is named in a warning") {
  REQUIRE(chat_param(R"("metadata":{"a":"b"},"prompt_cache_key":"k")").empty());
  engine::Event end;
  end.finish = engine::Finish::stop;
  prepared.answer->collect(0, end);
  CHECK(prepared.answer->result().at("warnings").as_array().size() == 2);
}

TEST_CASE_METHOD(Fixture, "What the template does not show is refused or named in a warning") {
  // The word of the function is in the prompt, the call is not.
  CHECK(message_error(R"([{"role":"user","content":"search"},{"role":"assistant","tool_calls":[
      {"id":"1","type":"function","function":{"name":"search","arguments":"{}"}}]}])") == "messages");
  REQUIRE(message_error(R"([{"role":"user","content":"a","name":"b"},{"role":"assistant","content":"c","thinking":"d"}])").empty());
  engine::Event end;
  end.finish = engine::Finish::stop;
  prepared.answer->collect(0, end);
  CHECK(prepared.answer->result().at("warnings").as_array().size() == 2);
}

TEST_CASE_METHOD(Fixture, "Messages") {
  CHECK(message_error("[]") == "messages");
  CHECK(message_error("null") == "messages");
  CHECK(message_error("[5]") == "messages[0]");
  CHECK(message_error(R"([{"content":"a"}])") == "messages[0].role");
  CHECK(message_error(R"([{"role":"alien","content":"a"}])") == "messages[0].role");
  CHECK(message_error(R"([{"role":"user"}])") == "messages[0].content");
  CHECK(message_error(R"([{"role":"user","content":null}])") == "messages[0].content");
  CHECK(message_error(R"([{"role":"user","content":""}])").empty());
  CHECK(message_error(R"([{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}])") == "messages[0].content");
  CHECK(message_error(R"([{"role":"user","content":"a","tol_calls":[]}])") == "messages[0].tol_calls");
  CHECK(message_error(R"([{"role":"user","content":"a"},{"role":"assistant","content":null}])") == "messages[1].content");
  // The template's own complaint, and a call that the template would drop.
  CHECK(message_error(R"([{"role":"tool","content":"","tool_call_id":"1"}])") == "messages");
  CHECK(
      message_error(
          R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"look_up","arguments":"{}"}}]}])") ==
      "messages");
}

TEST_CASE_METHOD(Fixture, "Tools that the template shows") {
  auto shows = text::ChatTemplate::compile("{% for t in tools %}{{ t.function.name }}{% endfor %}{{ messages[0].content }}");
  REQUIRE(shows.ok());
  models[0].chat_template = &*shows;
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"look_up"}}])";
  CHECK(chat_param(tools + R"(,"tool_choice":"none")").empty());
  CHECK(prompt() == "look_uphi");
  CHECK(chat_param(tools) == "tools");
}

TEST_CASE_METHOD(Fixture, "Models") {
  CHECK(chat(R"({"model":"../../etc/passwd","messages":[{"role":"user","content":"a"}]})")->status == 404);
  CHECK(chat(R"({"model":"../../etc/passwd","messages":[{"role":"user","content":"a"}]})")->message.find("etc") == std::string::npos);
  models.push_back(models[0]);
  models[1].name = "bare";
  models[1].chat_template = nullptr;
  models[1].template_error = "template:3:7: unknown filter";
  CHECK(chat(R"({"messages":[{"role":"user","content":"a"}]})")->param == "model");
  const MaybeError error = chat(R"({"model":"bare","messages":[{"role":"user","content":"a"}]})");
  REQUIRE(error);
  CHECK(error->message.find("template:3:7") != std::string::npos);
}

TEST_CASE_METHOD(Fixture, "Prompts of completions") {
  REQUIRE_FALSE(completion(R"({"prompt":["a","bc"],"n":2})"));
  CHECK(prepared.requests.size() == 2);
  CHECK(prepared.requests[1].prompt == std::vector<std::int32_t>{'b', 'c'});
  CHECK(prepared.requests[0].max_tokens == 16);
  REQUIRE_FALSE(completion(R"({"prompt":[97,98]})"));
  CHECK(prepared.requests[0].prompt == std::vector<std::int32_t>{97, 98});
  REQUIRE_FALSE(completion(R"({"prompt":[[97],[98]]})"));
  CHECK(prepared.requests.size() == 2);
  REQUIRE_FALSE(completion(R"({"prompt":""})"));
  CHECK(prepared.requests[0].prompt == std::vector<std::int32_t>{256});
  REQUIRE_FALSE(completion(R"({"prompt":"<|im_start|>"})"));
  CHECK(prepared.requests[0].prompt == std::vector<std::int32_t>{258});
  for (const char* bad : {"[]", "[[]]", "5", "[260]", "[-1]", "[1.5]", "[1,\"a\"]", "[\"a\",[1]]x", "{}", "null", "[null]"})
    CHECK(completion(R"({"prompt":)" + std::string{bad} + "}"));
  REQUIRE(completion(R"({"prompt":[1,"a"]})"));
}

TEST_CASE_METHOD(Fixture, "Fields of completions") {
  CHECK(completion_param(R"("echo":true,"max_tokens":0)").empty());
  CHECK(prepared.requests[0].score_prompt);
  CHECK(completion_param(R"("best_of":1)").empty());
  CHECK(completion_param(R"("suffix":"")").empty());
  CHECK(completion_param(R"("max_tokens":0)") == "max_tokens");
  CHECK(completion_param(R"("suffix":"x")") == "suffix");
  CHECK(completion_param(R"("best_of":2)") == "best_of");
  CHECK(completion_param(R"("logprobs":21)") == "logprobs");
  CHECK(completion_param(R"("messages":[])") == "messages");
}

TEST_CASE_METHOD(Fixture, "B63: the context") {
  models[0].context = 10;
  CHECK_FALSE(completion(R"({"prompt":"123456789","max_tokens":1})"));
  CHECK_FALSE(completion(R"({"prompt":"123456789","max_tokens":100})"));
  CHECK(prepared.requests[0].max_tokens == 1);
  const MaybeError error = completion(R"({"prompt":"12345678901"})");
  REQUIRE(error);
  CHECK(error->code == "context_length_exceeded");
  CHECK(error->message.find("10") != std::string::npos);
  CHECK(error->message.find("11") != std::string::npos);
  CHECK(completion(R"({"prompt":"1234567890"})"));
  CHECK_FALSE(completion(R"({"prompt":"1234567890","max_tokens":0,"echo":true,"logprobs":1})"));
  CHECK(completion("{\"prompt\":\"" + std::string(1u << 20, 'a') + "\"}")->code == "context_length_exceeded");
}

TEST_CASE_METHOD(Fixture, "B131, B133: hostile JSON") {
  const std::vector<std::string> bodies = {std::string(3000, '['),
                                           std::string(100000, '['),
                                           "{\"prompt\":\"\xff\xfe\"}",
                                           "{\"prompt\":\"\\ud800\"}",
                                           "{\"prompt\":\"\xc0\x80\"}",
                                           std::string{"{\"prompt\":\"a\",\"prompt\":\"b\"}"},
                                           std::string{"[]"},
                                           std::string{""},
                                           std::string{"{\"prompt\":\"a\"} x"},
                                           "{\"metadata\":" + std::string(100, '[') + std::string(100, ']') + "}"};
  for (const std::string& body : bodies) {
    const MaybeError error = completion(body);
    REQUIRE(error);
    CHECK(error->status == 400);
  }
  CHECK(completion("{\"prompt\":\"a\",\"max_tokens\":" + std::string(1u << 20, '9') + "}"));
}

TEST_CASE("B122: the API key") {
  const KeyCheck keys{{"sk-test", "sk-other"}};
  std::uint64_t tenant = 0;
  const auto refused = [&](const char* value) {
    Head head;
    if (value != nullptr) head.headers.emplace_back("Authorization", value);
    return keys.check(head, tenant).has_value();
  };
  CHECK_FALSE(refused("Bearer sk-test"));
  const std::uint64_t first = tenant;
  CHECK_FALSE(refused("Bearer sk-other"));
  CHECK((first != 0 && tenant != 0 && tenant != first));
  CHECK_FALSE(refused("bearer sk-test"));
  for (const char* bad : {"Bearer sk-tes", "Bearer sk-testx", "Bearer", "Bearer ", "", "sk-test", "Basic sk-test"}) CHECK(refused(bad));
  CHECK(refused(nullptr));
  CHECK_FALSE(KeyCheck{{}}.check(Head{}, tenant).has_value());
  CHECK(tenant == 0);
}
