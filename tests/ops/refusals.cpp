// What a batch or a program may not be: an error with a reason, and nothing changed.
#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

using Spoil = std::function<void(Session::Batch&)>;

void refuses(Session& session, const char* what, mekik_status wanted, const Spoil& spoil) {
  INFO(what);
  const std::vector<Part> parts{{{1, 2, 3}, 0, {0}, -1, 0}, {{4, 5}, 4, {1, 2}, 1, 1}};
  auto batch = session.batch(parts);
  spoil(*batch);
  testing::FakeHost::take_failure();
  CHECK(session.submit(batch->raw) == wanted);
  CHECK_FALSE(testing::FakeHost::take_failure().empty());
}

}  // namespace

TEST_CASE("a wrong batch is refused and changes nothing") {
  ProgramBuilder b{4};
  build_llama(b, "q4_0", "f16", 0);
  Session session{subject(), b};
  const auto tokens = random_tokens(6, 1);
  const std::vector<std::int32_t> blocks{0, 1, 2};
  const auto truth = [&] {
    session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 0}});
    return session.step({{{tokens.begin() + 4, tokens.end()}, 4, blocks, 0, 0}});
  }();
  session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 0}});
  refuses(session, "token past the vocabulary", MEKIK_E_INVALID, [](auto& x) { x.tokens[1] = kVocab; });
  refuses(session, "negative token", MEKIK_E_INVALID, [](auto& x) { x.tokens[4] = -1; });
  refuses(session, "row past the tokens", MEKIK_E_INVALID, [](auto& x) { x.rows[0] = 5; });
  refuses(session, "block past the pool", MEKIK_E_INVALID, [](auto& x) { x.table[0] = 64; });
  refuses(session, "missing block", MEKIK_E_INVALID, [](auto& x) { x.table[0] = -1; });
  refuses(session, "two sequences write one block", MEKIK_E_INVALID, [&](auto& x) { x.table[0] = 2; });
  refuses(session, "no tokens in a sequence", MEKIK_E_INVALID, [](auto& x) { x.seq_start[1] = 0; });
  refuses(session, "sequences past the tokens", MEKIK_E_INVALID, [](auto& x) { x.seq_start[2] = 9; });
  refuses(session, "negative context", MEKIK_E_INVALID, [](auto& x) { x.context[1] = -4; });
  refuses(session, "context past its blocks", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 4000; });
  refuses(session, "more tokens than the limit", MEKIK_E_INVALID, [](auto& x) { x.raw.n_tokens = 65; });
  refuses(session, "more sequences than the limit", MEKIK_E_INVALID, [](auto& x) { x.raw.n_seqs = 9; });
  refuses(session, "a use that no plan lists", MEKIK_E_UNSUPPORTED, [](auto& x) { x.raw.uses = std::uint64_t{1} << 40; });
  CHECK(session.step({{{tokens.begin() + 4, tokens.end()}, 4, blocks, 0, 0}}) == truth);
  std::uint64_t ticket = 0;
  std::vector<std::uint8_t> bytes(session.plan().block_bytes[0]);
  const auto& table = session.backend().table();
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_BLOCK, 0, 64, bytes.data(), bytes.size(), &ticket) == MEKIK_E_INVALID);
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_BLOCK, 0, 0, bytes.data(), bytes.size() - 1, &ticket) == MEKIK_E_INVALID);
  const mekik_move past{MEKIK_WHAT_ROWS, 0, 0, 1, 3, 0, 2, 0};
  CHECK(table.move(session.exec(), &past, 1, sizeof past, &ticket) == MEKIK_E_INVALID);
}

TEST_CASE("a wrong slot is refused and changes nothing") {
  ProgramBuilder b{4};
  build_hybrid(b);
  std::string why;
  if (!supports_all(subject(), b, &why)) return;
  Session session{subject(), b};
  const auto tokens = random_tokens(6, 1);
  const std::vector<std::int32_t> blocks{0, 1, 2};
  const auto past = [&] { session.step({{{tokens.begin(), tokens.begin() + 4}, 0, blocks, -1, 1}}); };
  const std::vector<Part> rest{{{tokens.begin() + 4, tokens.end()}, 4, blocks, 1, 1}};
  past();
  const auto truth = session.step(rest);
  past();
  refuses(session, "a slot past the pool", MEKIK_E_INVALID, [](auto& x) { x.state_in[1] = 16; });
  refuses(session, "a negative slot", MEKIK_E_INVALID, [](auto& x) { x.state_out[4] = -2; });
  refuses(session, "saved past the pool", MEKIK_E_INVALID, [](auto& x) { x.state_out[4] = 16; });
  refuses(session, "a past without a state", MEKIK_E_INVALID, [](auto& x) { x.state_in[1] = -1; });
  refuses(session, "one slot written twice", MEKIK_E_INVALID, [](auto& x) { x.state_out[2] = x.state_out[4] = 3; });
  refuses(session, "saved on the way", MEKIK_E_INVALID, [](auto& x) { x.state_out[3] = 3; });
  refuses(session, "no slots", MEKIK_E_INVALID, [](auto& x) { x.raw.state_in = nullptr; });
  CHECK(session.step(rest) == truth);
  std::uint64_t ticket = 0;
  std::vector<std::uint8_t> bytes(session.plan().slot_bytes);
  const auto& table = session.backend().table();
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_SLOT, 0, 16, bytes.data(), bytes.size(), &ticket) == MEKIK_E_INVALID);
  CHECK(table.state_read(session.exec(), MEKIK_WHAT_SLOT, 0, 0, bytes.data(), bytes.size() - 1, &ticket) == MEKIK_E_INVALID);
  const mekik_move past_end{MEKIK_WHAT_SLOT, 0, 0, 16, 0, 0, 0, 0};
  CHECK(table.move(session.exec(), &past_end, 1, sizeof past_end, &ticket) == MEKIK_E_INVALID);
}

TEST_CASE("what looks to both sides comes whole, and places are within their table") {
  ProgramBuilder b{4};
  build_encoder(b);
  const auto place = b.temp({kT, 64});
  b.op(op::embed, {b.input("positions"), b.weight("f32", 100, 64)}, {place});
  std::string why;
  if (!supports_all(subject(), b, &why)) return;
  Session session{subject(), b};
  refuses(session, "a sequence in pieces", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 4; });
  refuses(session, "a place past the table", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 0, x.positions[2] = 100; });
  refuses(session, "a negative place", MEKIK_E_INVALID, [](auto& x) { x.context[1] = 0, x.positions[2] = -1; });
}

TEST_CASE("an operation that is not as ops.def says is not supported") {
  const auto refused = [](const std::function<void(ProgramBuilder&)>& build) {
    ProgramBuilder b{4};
    build(b);
    std::string why;
    CHECK_FALSE(supports_all(subject(), b, &why));
    CHECK(why.size() > 20);
  };
  const auto rows = [](ProgramBuilder& b) { return random_rows(b, {32}); };
  refused([&](ProgramBuilder& b) { b.op(9999, {rows(b)}, {b.temp({kT, 32})}); });
  refused([&](ProgramBuilder& b) { b.op(op::act, {rows(b)}, {b.temp({kT, 32})}, {1, 2}); });
  refused([&](ProgramBuilder& b) { b.op(op::act, {rows(b)}, {b.temp({kT, 32})}, {77}); });
  refused([&](ProgramBuilder& b) { b.op(op::linear, {rows(b), b.weight("f32", 8, 33), kNone}, {b.temp({kT, 8})}); });
  refused([&](ProgramBuilder& b) {
    b.op(op::attention, {rows(b), b.state(1, 64, "q9_x"), kNone, kNone}, {b.temp({kT, 1, 32})}, {32, 1, 0}, {1.0, 0.0});
  });
}

TEST_CASE("the plan is held to") {
  using Build = std::function<void(ProgramBuilder&)>;
  for (const Build& build : {Build{[](ProgramBuilder& b) { build_llama(b, "q4_0", "f16", 0); }}, Build{build_hybrid}, Build{build_mamba},
                             Build{[](ProgramBuilder& b) { build_experts(b, "q4_0"); }},
                             Build{[](ProgramBuilder& b) { build_latent(b, "q8_0", "f16"); }}, Build{build_encoder}}) {
    ProgramBuilder b{4};
    build(b);
    std::string why;
    if (!supports_all(subject(), b, &why)) continue;
    testing::FakeHost& host = subject().host();
    const std::uint64_t before = host.bytes_in_use();
    {
      Session session{subject(), b};
      const mekik_plan& p = session.plan();
      const std::uint64_t planned = p.weight_bytes + p.work_bytes + p.host_bytes + p.block_bytes[0] * session.limits().n_blocks[0] +
                                    p.slot_bytes * session.limits().n_slots;
      CHECK(host.bytes_in_use() - before <= planned);
      session.step({{random_tokens(9, 2), 0, {0, 1, 2}, -1, 0}});
      CHECK(host.bytes_in_use() - before <= planned);
    }
    CHECK(host.bytes_in_use() == before);
  }
}

}  // namespace mekik::test
