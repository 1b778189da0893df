#include "msccl/order.h"

#include <deque>
#include <map>
#include <tuple>
#include <utility>

namespace unisono::msccl {

using executors::StepId;

StepTable::StepTable(const MscclProgram& program) : program_(program) {
  for (const Gpu& gpu : program.gpus) {
    add_gpu();
    for (const ThreadBlock& block : gpu.blocks) {
      add_block(block.steps.size());
    }
  }
}

const ThreadBlock& StepTable::block(std::size_t index) const {
  const StepId& at = id(index);
  return program_.gpus[static_cast<std::size_t>(at.gpu)].blocks[static_cast<std::size_t>(at.block)];
}

const Step& StepTable::step(std::size_t index) const {
  return block(index).steps[static_cast<std::size_t>(id(index).step)];
}

std::size_t StepTable::awaited(std::size_t index) const {
  const Step& waiting = step(index);
  if (waiting.depends_on_block < 0) {
    return none();
  }
  const StepId named{id(index).gpu, waiting.depends_on_block, waiting.depends_on_step};
  const std::vector<Step>& steps = block(this->index(named)).steps;
  for (int at = named.step; at < static_cast<int>(steps.size()); ++at) {
    if (steps[static_cast<std::size_t>(at)].tells) {
      return this->index({named.gpu, named.block, at});
    }
  }
  return this->index({named.gpu, named.block, static_cast<int>(steps.size()) - 1});
}

namespace {

class Runner {
 public:
  Runner(const MscclProgram& program, const StepTable& table, std::size_t room)
      : table_(table), room_(room), is_done_(table.size(), false), waiting_(table.size()) {
    order_.sent_by.assign(table.size(), StepTable::none());
    for (std::size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
      const std::vector<ThreadBlock>& blocks = program.gpus[gpu].blocks;
      for (std::size_t block = 0; block < blocks.size(); ++block) {
        const int own = static_cast<int>(gpu);
        const std::size_t at = table.block_number({own, static_cast<int>(block), 0});
        const ThreadBlock& one = blocks[block];
        if (one.send >= 0) {
          links_[{own, one.send, one.channel}].sender = at;
        }
        if (one.receive >= 0) {
          links_[{one.receive, own, one.channel}].receiver = at;
        }
        next_.push_back(table.begin(at));
        ready_.push_back(at);
      }
    }
  }

  Order run() {
    while (!ready_.empty()) {
      const std::size_t block = ready_.front();
      ready_.pop_front();
      while (next_[block] < table_.end(block) && can_run(next_[block])) {
        complete(next_[block]++);
      }
    }
    for (std::size_t block = 0; block < next_.size(); ++block) {
      if (next_[block] < table_.end(block)) {
        order_.stuck.push_back(next_[block]);
      }
    }
    return std::move(order_);
  }

 private:
  struct Link {
    std::size_t sender = 0;
    std::size_t receiver = 0;
    std::deque<std::size_t> messages;
  };

  Link& outgoing(std::size_t index) {
    const ThreadBlock& block = table_.block(index);
    return links_.at({table_.id(index).gpu, block.send, block.channel});
  }
  Link& incoming(std::size_t index) {
    const ThreadBlock& block = table_.block(index);
    return links_.at({block.receive, table_.id(index).gpu, block.channel});
  }

  bool can_run(std::size_t index) {
    const StepTraits& traits = traits_of(table_.step(index).type);
    const std::size_t on = table_.awaited(index);
    if (on != StepTable::none() && !is_done_[on]) {
      waiting_[on].push_back(table_.block_number(index));
      return false;
    }
    return !(traits.receives && incoming(index).messages.empty()) &&
           !(traits.sends && room_ > 0 && outgoing(index).messages.size() >= room_);
  }

  void complete(std::size_t index) {
    const StepTraits& traits = traits_of(table_.step(index).type);
    if (traits.receives) {
      Link& link = incoming(index);
      order_.sent_by[index] = link.messages.front();
      link.messages.pop_front();
      ready_.push_back(link.sender);
    }
    if (traits.sends) {
      Link& link = outgoing(index);
      link.messages.push_back(index);
      ready_.push_back(link.receiver);
    }
    is_done_[index] = true;
    order_.steps.push_back(index);
    ready_.insert(ready_.end(), waiting_[index].begin(), waiting_[index].end());
    waiting_[index].clear();
  }

  const StepTable& table_;
  std::size_t room_;
  Order order_;
  std::vector<bool> is_done_;
  std::vector<std::vector<std::size_t>> waiting_;    // blocks that wait for a step
  std::vector<std::size_t> next_;                    // step of each block
  std::map<std::tuple<int, int, int>, Link> links_;  // from, to, channel
  std::deque<std::size_t> ready_;
};

}  // namespace

Order order_of(const MscclProgram& program, const StepTable& table, std::size_t room) {
  return Runner(program, table, room).run();
}

}  // namespace unisono::msccl
