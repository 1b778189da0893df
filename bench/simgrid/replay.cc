#include "replay.h"

#include <chrono>
#include <memory>
#include <set>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>
#include <vector>

#include "topology/routes.h"

namespace unisono::bench {
namespace {

namespace s4u = simgrid::s4u;

struct Order {
  struct Send {
    s4u::Mailbox* mailbox = nullptr;
    std::uint64_t bytes = 0;
    int needs = 0;  // number of messages that must be received before
  };
  std::vector<Send> sends;
  std::vector<s4u::Mailbox*> receives;
  s4u::SemaphorePtr received;
};

std::vector<s4u::Host*> make_platform(const Topology& topology, const CompactSchedule& schedule) {
  s4u::NetZone* zone = s4u::create_full_zone("zone");
  constexpr double kAnySpeed = 1e9;
  std::vector<s4u::Host*> hosts;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    hosts.push_back(zone->create_host("rank" + std::to_string(rank), kAnySpeed));
  }
  std::vector<s4u::Link*> links;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const Link& link = topology.links[i];
    links.push_back(zone->create_link("link" + std::to_string(i), link.bytes_per_us * 1e6));
    links.back()->set_latency(link.latency_us * 1e-6);
    links.back()->seal();
  }
  Router router(topology);
  std::set<std::pair<int, int>> known;
  for (const CompactPhase& phase : schedule.phases) {
    for (const CompactMessage& message : phase.messages) {
      if (known.emplace(message.from, message.to).second) {
        std::vector<s4u::LinkInRoute> route;
        for (const int link : router.route(message.from, message.to)) {
          route.emplace_back(links[static_cast<std::size_t>(link)]);
        }
        zone->add_route(hosts[static_cast<std::size_t>(message.from)]->get_netpoint(),
                        hosts[static_cast<std::size_t>(message.to)]->get_netpoint(), nullptr,
                        nullptr, route, false);
      }
    }
  }
  zone->seal();
  return hosts;
}

std::vector<Order> make_orders(const CompactSchedule& schedule, double bytes) {
  std::vector<Order> orders(static_cast<std::size_t>(schedule.ranks));
  for (Order& order : orders) {
    order.received = s4u::Semaphore::create(0);
  }
  const double chunk = bytes / static_cast<double>(schedule.chunks);
  for (const CompactPhase& phase : schedule.phases) {
    for (std::int64_t step = 0; step < phase.steps; ++step) {
      std::vector<int> before;
      for (const Order& order : orders) {
        before.push_back(static_cast<int>(order.receives.size()));
      }
      for (const CompactMessage& message : phase.messages) {
        s4u::Mailbox* mailbox =
            s4u::Mailbox::by_name(std::to_string(message.from) + ">" + std::to_string(message.to));
        orders[static_cast<std::size_t>(message.from)].sends.push_back(
            {.mailbox = mailbox,
             .bytes = static_cast<std::uint64_t>(chunk * static_cast<double>(message.chunks)),
             .needs = phase.waits ? before[static_cast<std::size_t>(message.from)] : 0});
        orders[static_cast<std::size_t>(message.to)].receives.push_back(mailbox);
      }
    }
  }
  return orders;
}

void send_all(const Order& order) {
  static int payload = 0;
  int received = 0;
  for (const Order::Send& send : order.sends) {
    for (; received < send.needs; ++received) {
      order.received->acquire();
    }
    send.mailbox->put(&payload, send.bytes);
  }
}

void receive_all(const Order& order) {
  for (s4u::Mailbox* mailbox : order.receives) {
    (void)mailbox->get<int>();
    order.received->release();
  }
}

}  // namespace

Replayed replay(const Topology& topology, const CompactSchedule& schedule, double bytes) {
  const auto begin = std::chrono::steady_clock::now();
  int count = 2;
  std::string name = "simgrid_bench";
  std::string quiet = "--log=root.thresh:warning";
  std::vector<char*> words = {name.data(), quiet.data(), nullptr};
  s4u::Engine engine(&count, words.data());
  for (const char* setting :
       {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0",
        "network/latency-factor:1", "network/bandwidth-factor:1", "network/weight-S:0"}) {
    s4u::Engine::set_config(std::string(setting));
  }
  const std::vector<s4u::Host*> hosts = make_platform(topology, schedule);
  const std::vector<Order> orders = make_orders(schedule, bytes);
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    const Order& order = orders[rank];
    s4u::Actor::create("sends", hosts[rank], [&order] { send_all(order); });
    s4u::Actor::create("receives", hosts[rank], [&order] { receive_all(order); });
  }
  engine.run();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  return {.simulated_us = s4u::Engine::get_clock() * 1e6, .wall_s = wall.count()};
}

}  // namespace unisono::bench
