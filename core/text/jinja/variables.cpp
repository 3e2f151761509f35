// The life of variables.
#include "text/jinja/value.hpp"

namespace mekik::text::jinja {

Variables::Variables(Living& living) : living_{living}, after_{living.first_} {
  if (after_ != nullptr) after_->before_ = this;
  living.first_ = this;
}

Variables::~Variables() {
  unlink();
  living_.bury(std::move(values));
}

void Variables::unlink() {
  if (!linked_) return;
  linked_ = false;
  (before_ != nullptr ? before_->after_ : living_.first_) = after_;
  if (after_ != nullptr) after_->before_ = before_;
}

// What dies while other values are freed waits for its turn, so that chains are freed in a loop.
void Living::bury(Values values) {
  if (values.empty()) return;
  graves_.push_back(std::move(values));
  if (digging_) return;
  digging_ = true;
  while (!graves_.empty()) {
    const Values last = std::move(graves_.back());
    graves_.pop_back();
  }
  digging_ = false;
}

void Living::clear() {
  while (first_ != nullptr) {
    Variables* one = first_;
    one->unlink();
    bury(std::exchange(one->values, {}));  // which may be the end of `one`
  }
}

}  // namespace mekik::text::jinja
