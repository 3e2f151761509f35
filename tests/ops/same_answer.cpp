// Promise 4: on a backend that says ROW_INVARIANT, no bit of a sequence's logits depends on the batch, the chunks or the threads.
#include <cstring>
#include <limits>

#include "programs.hpp"
#include "subject.hpp"
#include "support/catch.hpp"

namespace mekik::test {

namespace {

constexpr std::size_t kLength = 19;

struct Model {
  std::string name;
  std::function<void(ProgramBuilder&)> build;
  Sizes sizes = {};
};
std::vector<Model> models() {
  const Sizes wide{.block_tokens = 16};
  std::vector<Model> all;
  for (const std::string form : {"f32", "bf16", "q4_0", "q4_1", "q8_0", "q6_k"})
    all.push_back({"llama " + form, [form](ProgramBuilder& b) { build_llama(b, form, "f16", 0); }});
  all.push_back({"llama with a window", [](ProgramBuilder& b) { build_llama(b, "q4_0", "f16", 5); }});
  all.push_back({"llama with chunks", [](ProgramBuilder& b) { build_llama(b, "q4_0", "f16", -6); }});
  all.push_back({"llama in blocks of 16", [](ProgramBuilder& b) { build_llama(b, "q4_0", "f32", 0); }, wide});
  for (const char* kv : {"q8_head", "q4_head"}) {
    const std::string name = std::string{"llama, kv "} + kv;
    all.push_back({name, [kv](ProgramBuilder& b) { build_llama(b, "q4_0", kv, 0); }});
    all.push_back({name + ", a window, blocks of 16", [kv](ProgramBuilder& b) { build_llama(b, "q8_0", kv, 7); }, wide});
    all.push_back({name + ", latents", [kv](ProgramBuilder& b) { build_latent(b, "q8_0", kv); }});
  }
  all.push_back({"hybrid", [](ProgramBuilder& b) { build_hybrid(b); }});
  all.push_back({"mamba", [](ProgramBuilder& b) { build_mamba(b); }});
  for (const std::string form : {"f32", "q4_0", "q6_k"})
    all.push_back({"experts " + form, [form](ProgramBuilder& b) { build_experts(b, form); }});
  all.push_back({"latents", [](ProgramBuilder& b) { build_latent(b, "q8_0", "f16"); }});
  all.push_back({"latents in blocks of 16", [](ProgramBuilder& b) { build_latent(b, "f32", "bf16"); }, wide});
  return all;
}

bool equal(const std::vector<float>& a, const float* b) { return std::memcmp(a.data(), b, a.size() * sizeof(float)) == 0; }

// Feeds a sequence alone, cut at `cuts`, into the given blocks and slot.
std::vector<float> feed(Session& session, const std::vector<std::int32_t>& tokens, const std::vector<std::size_t>& cuts,
                        const std::vector<std::int32_t>& blocks = {3, 1, 4, 15, 9, 2}, std::int32_t slot = 2) {
  std::vector<float> all;
  std::size_t from = 0;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t to = i < cuts.size() ? cuts[i] : tokens.size();
    const Part part{{tokens.begin() + static_cast<std::ptrdiff_t>(from), tokens.begin() + static_cast<std::ptrdiff_t>(to)},
                    static_cast<std::int32_t>(from),
                    blocks,
                    from == 0 ? -1 : slot,
                    slot};
    const auto rows = session.step({part});
    all.insert(all.end(), rows.begin(), rows.end());
    from = to;
  }
  return all;
}

// Runs f(session, tokens, truth, builder) for every model that the backend runs, if it claims invariance.
template <class F>
void with_models(F&& f) {
  if (!subject().row_invariant()) {
    WARN(subject().name() << " does not claim ROW_INVARIANT");
    return;
  }
  for (const Model& m : models()) {
    INFO(m.name);
    ProgramBuilder b{3};
    m.build(b);
    std::string why;
    if (!supports_all(subject(), b, &why)) {
      WARN(subject().name() << " does not offer: " << why);
      continue;
    }
    Session session{subject(), b, m.sizes};
    session.fill_states(0xFF);  // NaN: whoever reads what was not written shows
    const auto tokens = random_tokens(kLength, 21);
    const auto truth = feed(session, tokens, {});
    for (const float v : truth) REQUIRE(std::isfinite(v));
    f(session, tokens, truth, b);
  }
}

}  // namespace

TEST_CASE("chunks cut anywhere give the same bits") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    for (std::size_t cut = 1; cut < tokens.size(); ++cut) {
      CAPTURE(cut);
      session.fill_states(0xFF);
      CHECK(equal(truth, feed(session, tokens, {cut}, {7, 6, 5, 4, 3}, 1).data()));
    }
    CHECK(equal(truth, feed(session, tokens, {2, 3, 9, 10, 16}).data()));
  });
}

TEST_CASE("decoding gives the bits of the prefill") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    std::vector<std::size_t> each;
    for (std::size_t i = 1; i < tokens.size(); ++i) each.push_back(i);
    session.fill_states(0xFF);
    CHECK(equal(truth, feed(session, tokens, each).data()));
  });
}

TEST_CASE("no place in a batch and no neighbour changes a bit") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    const std::size_t width = session.width();
    const auto others = random_tokens(8, 22);
    for (std::size_t place = 0; place < 5; ++place) {
      CAPTURE(place);
      session.fill_states(0xFF);
      std::vector<Part> parts;
      std::size_t before = 0;
      for (std::size_t s = 0; s < 5; ++s) {
        if (s == place) {
          parts.push_back({tokens, 0, {3, 1, 4, 15, 9}, -1, 2});
          continue;
        }
        // Neighbours of 1 to 8 tokens, some of NaN and infinities.
        Part p{{others.begin(), others.begin() + static_cast<std::ptrdiff_t>(1 + (s * 3 + place) % 8)},
               0,
               {static_cast<std::int32_t>(20 + 2 * s), static_cast<std::int32_t>(21 + 2 * s)},
               -1,
               static_cast<std::int32_t>(5 + s)};
        p.tokens[0] = s % 2 == 0 ? 62 : 63;
        if (s < place) before += p.tokens.size();
        parts.push_back(std::move(p));
      }
      const auto rows = session.step(parts);
      CHECK(equal(truth, rows.data() + before * width));
    }
  });
}

TEST_CASE("one row at every place of a batch of single tokens gives the same bits") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    const std::vector<std::int32_t> past{tokens.begin(), tokens.end() - 1};
    const std::vector<float> last(truth.end() - static_cast<std::ptrdiff_t>(session.width()), truth.end());
    for (std::size_t n = 1; n <= 8; ++n)
      for (const std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
        feed(session, past, {});
        std::vector<Part> parts(n);
        for (std::size_t s = 0; s < n; ++s)
          parts[s] = {{s % 2 == 0 ? 62 : 63}, 0, {static_cast<std::int32_t>(20 + s)}, -1, static_cast<std::int32_t>(5 + s)};
        parts[place] = {{tokens.back()}, static_cast<std::int32_t>(past.size()), {3, 1, 4, 15, 9, 2}, 2, 2};
        CAPTURE(n, place);
        CHECK(equal(last, session.step(parts).data() + place * session.width()));
      }
  });
}

TEST_CASE("a second turn after a decoded answer gives the bits of the same text prefilled") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    for (const std::size_t answer : {3u, 5u, 8u}) {  // a prompt, an answer of six tokens one by one, and the rest at once
      CAPTURE(answer);
      std::vector<std::size_t> cuts;
      for (std::size_t i = answer; i <= answer + 6; ++i) cuts.push_back(i);
      session.fill_states(0xFF);
      CHECK(equal(truth, feed(session, tokens, cuts).data()));
    }
  });
}

TEST_CASE("threads change no bit") {
  with_models([](Session& first, const auto& tokens, const auto& truth, ProgramBuilder& builder) {
    Sizes sizes;
    sizes.block_tokens = first.limits().block_tokens;
    for (const std::uint32_t threads : {1u, 2u, 3u, 5u}) {
      CAPTURE(threads);
      subject().host().set_threads(threads);
      Session session{subject(), builder, sizes};  // a device of its own: its threads are made when it is opened
      session.fill_states(0xFF);
      CHECK(equal(truth, feed(session, tokens, {5, 6, 7}).data()));
      session.fill_states(0xFF);
      CHECK(equal(truth, feed(session, tokens, {}).data()));
    }
    subject().host().set_threads(2);
  });
}

TEST_CASE("states moved, read and written back give the same bits") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    const bool small = session.limits().block_tokens == 4;
    const std::size_t half = 10;  // within a block, the third of 4 tokens or the first of 16
    const std::vector<std::int32_t> first{tokens.begin(), tokens.begin() + half};
    feed(session, first, {});
    const auto& table = session.backend().table();
    std::uint64_t ticket = 0;
    const auto carry = [&](std::uint32_t what, std::int32_t from, std::int32_t to, std::uint64_t size) {
      std::vector<std::uint8_t> bytes(size);
      REQUIRE(table.state_read(session.exec(), what, 0, from, bytes.data(), size, &ticket) == MEKIK_OK);
      REQUIRE(table.wait(session.exec(), ticket, 1'000'000'000) == MEKIK_OK);
      REQUIRE(table.state_write(session.exec(), what, 0, to, bytes.data(), size, &ticket) == MEKIK_OK);
    };
    const auto move = [&](const std::vector<mekik_move>& moves) {
      REQUIRE(table.move(session.exec(), moves.data(), static_cast<std::uint32_t>(moves.size()), sizeof(mekik_move), &ticket) == MEKIK_OK);
      REQUIRE(table.wait(session.exec(), ticket, 1'000'000'000) == MEKIK_OK);
    };
    if (session.plan().block_bytes[0] != 0) {
      carry(MEKIK_WHAT_BLOCK, 3, 30, session.plan().block_bytes[0]);
      // The second block whole, of the third the two rows that are used; or of the first the ten.
      if (small) move({{MEKIK_WHAT_BLOCK, 0, 1, 31, 0, 0, 0, 0}, {MEKIK_WHAT_ROWS, 0, 4, 32, 0, 0, 2, 0}});
      else
        move({{MEKIK_WHAT_ROWS, 0, 30, 35, 0, 3, 10, 0},
              {MEKIK_WHAT_ROWS, 0, 35, 30, 3, 0, 10, 0},
              {MEKIK_WHAT_ROWS, 0, 30, 30, 0, 2, 10, 0},
              {MEKIK_WHAT_ROWS, 0, 30, 30, 2, 0, 10, 0}});
    }
    if (session.plan().slot_bytes != 0) {
      carry(MEKIK_WHAT_SLOT, 2, 5, session.plan().slot_bytes);
      move({{MEKIK_WHAT_SLOT, 0, 5, 7, 0, 0, 0, 0}});
    }
    const Part rest{{tokens.begin() + half, tokens.end()}, half, {30, 31, 32, 33, 34}, 7, 2};
    CHECK(equal({truth.begin() + static_cast<std::ptrdiff_t>(half * session.width()), truth.end()}, session.step({rest}).data()));
  });
}

TEST_CASE("a slot may be what one sequence starts from and where another is saved") {
  with_models([](Session& session, const auto& tokens, const auto& truth, ProgramBuilder&) {
    if (session.plan().slot_bytes == 0) return;
    const auto upto = [&](std::int32_t n) { return std::vector<std::int32_t>{tokens.begin(), tokens.begin() + n}; };
    const auto from = [&](std::int32_t n) { return std::vector<std::int32_t>{tokens.begin() + n, tokens.end() - 1}; };
    session.fill_states(0xFF);
    session.step({{upto(9), 0, {3, 1, 4, 15, 9}, -1, 2}, {upto(6), 0, {20, 21, 22, 23, 24}, -1, 5}});
    // Slots change places, and a third sequence is saved nowhere.
    const auto swapped =
        session.step({{from(9), 9, {3, 1, 4, 15, 9}, 2, 5}, {from(6), 6, {20, 21, 22, 23, 24}, 5, 2}, {upto(3), 0, {30, 31}, -1, -1}});
    const std::size_t width = session.width(), n = tokens.size() - 1;
    CHECK(std::memcmp(swapped.data(), truth.data() + 9 * width, (n - 9) * width * sizeof(float)) == 0);
    CHECK(std::memcmp(swapped.data() + (n - 9) * width, truth.data() + 6 * width, (n - 6) * width * sizeof(float)) == 0);
    const auto last = session.step({{{tokens.back()}, static_cast<std::int32_t>(n), {3, 1, 4, 15, 9}, 5, 5},
                                    {{tokens.back()}, static_cast<std::int32_t>(n), {20, 21, 22, 23, 24}, 2, 2}});
    CHECK(std::memcmp(last.data(), truth.data() + n * width, width * sizeof(float)) == 0);
    CHECK(std::memcmp(last.data() + width, truth.data() + n * width, width * sizeof(float)) == 0);
  });
}

TEST_CASE("long prompts cut at the edges of tiles give the same bits") {
  if (!subject().row_invariant()) return;
  for (const Model& m : models()) {
    INFO(m.name);
    ProgramBuilder b{3};
    m.build(b);
    std::string why;
    if (!supports_all(subject(), b, &why)) continue;
    Session session{subject(), b, {.max_tokens = 160, .max_seqs = 2, .block_tokens = m.sizes.block_tokens, .n_blocks = 48, .n_slots = 4}};
    const auto tokens = random_tokens(150, 23);
    std::vector<std::int32_t> blocks(40);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int32_t>(47 - i);
    const auto truth = feed(session, tokens, {}, blocks, 1);
    for (const std::vector<std::size_t>& cuts : std::vector<std::vector<std::size_t>>{{64}, {63, 65}, {1, 127, 128, 129}}) {
      session.fill_states(0xFF);
      CHECK(equal(truth, feed(session, tokens, cuts, blocks, 3).data()));
    }
  }
}

TEST_CASE("rows of an encoder do not depend on neighbours or threads") {
  ProgramBuilder b{3};
  build_encoder(b);
  std::string why;
  if (!subject().row_invariant() || !supports_all(subject(), b, &why)) return;
  const Sizes sizes{.max_tokens = 256};
  const auto tokens = random_tokens(70, 21), others = random_tokens(33, 22);
  std::vector<float> truth;
  for (const std::uint32_t threads : {1u, 2u, 5u}) {
    CAPTURE(threads);
    subject().host().set_threads(threads);
    Session session{subject(), b, sizes};
    const auto alone = session.step({{tokens, 0, {}, -1, -1}});
    if (truth.empty()) truth = alone;
    CHECK(alone == truth);
    for (std::size_t place = 0; place < 3; ++place) {
      CAPTURE(place);
      std::vector<Part> parts{{others, 0, {}, -1, -1}, {{others.begin(), others.begin() + 17}, 0, {}, -1, -1}};
      parts[0].tokens[3] = 62, parts[1].tokens[0] = 63;  // NaN and infinities
      const std::size_t before = place == 0 ? 0 : place == 1 ? 33 : 50;
      parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(place), {tokens, 0, {}, -1, -1});
      CHECK(equal(truth, session.step(parts).data() + before * session.width()));
    }
  }
  subject().host().set_threads(2);
}

}  // namespace mekik::test
