// C++: SimGrid 3.32 has no C interface for platforms. No exception leaves it.
#include "sim/sgx.h"

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <queue>
#include <string>
#include <unistd.h>
#include <vector>

#ifdef MESHWRIGHT_SANITIZE
#include <sanitizer/lsan_interface.h>
#endif

namespace s4u = simgrid::s4u;
using simgrid::kernel::routing::NetPoint;
using simgrid::kernel::routing::Route;

namespace {

using simgrid::kernel::resource::StandardLinkImpl;

// Timers that run out at one moment do so in the order in which they were started.
struct Timeout {
    double date_s;
    int64_t number;
    int id;
    bool operator>(const Timeout &other) const {
        return date_s != other.date_s ? date_s > other.date_s : number > other.number;
    }
};

// One engine per process is SimGrid's own rule, hence the one global of this program.
struct State {
    std::vector<s4u::Link *> links;
    std::vector<double> whole_bytes_per_s; // of every link, as it was opened
    std::map<int, double> bytes_per_s;     // of those that have less now
    s4u::Host *from = nullptr, *to = nullptr;
    std::vector<StandardLinkImpl *> route; // of the flow now starting
    std::vector<StandardLinkImpl *> parts; // SimGrid's own view of every link
    std::priority_queue<Timeout, std::vector<Timeout>, std::greater<Timeout>> timeouts;
    int64_t num_timers = 0;
    double wake_up_s = -1;              // for which SimGrid was last asked; negative: for none
    std::vector<s4u::Activity *> ended; // released when the clock next advances
    const SgxEvents *events = nullptr;
    std::string error; // the first one
};
State state;

s4u::Link *link_at(int link) {
    return state.links.at(static_cast<size_t>(link));
}

double whole_of(int link) {
    return state.whole_bytes_per_s[static_cast<size_t>(link)];
}

// Gives those of a route that have less their whole capacity, or takes it from them again.
void links_show(const int *links, int num_links, bool whole) {
    if (state.bytes_per_s.empty()) return;
    for (int i = 0; i < num_links; i++) {
        auto less = state.bytes_per_s.find(links[i]);
        if (less == state.bytes_per_s.end()) continue;
        link_at(links[i])->set_bandwidth(whole ? whole_of(links[i]) : less->second);
    }
}

// SimGrid only has to share links: all flows go from one host to another, and the zone answers
// with the links of the flow that is just being started. So nothing is stored per pair of GPUs.
struct FlowZone : simgrid::kernel::routing::NetZoneImpl {
    FlowZone() : NetZoneImpl("network") {
    }
    void get_local_route(const NetPoint *, const NetPoint *, Route *into, double *) override {
        into->link_list_ = state.route;
    }
    void get_graph(const s_xbt_graph_t *, std::map<std::string, xbt_node_t, std::less<>> *,
                   std::map<std::string, xbt_edge_t, std::less<>> *) override {
    }
};

// SimGrid's timers take some allocations each, so it has one at a time: that of the next timeout.
void wake_up_at(double date_s);

// asked_s: for when; what is not the last request was made before a nearer timeout. Timers that
// start here are later than that, so none of them asks anew.
void wake_up(double asked_s) {
    if (asked_s != state.wake_up_s) return;
    while (!state.timeouts.empty() && state.timeouts.top().date_s <= s4u::Engine::get_clock()) {
        int id = state.timeouts.top().id;
        state.timeouts.pop();
        state.events->timer_done(state.events->context, id);
    }
    state.wake_up_s = -1;
    if (!state.timeouts.empty()) wake_up_at(state.timeouts.top().date_s);
}

void wake_up_at(double date_s) {
    if (state.wake_up_s >= 0 && state.wake_up_s <= date_s) return;
    state.wake_up_s = date_s;
    simgrid::kernel::timer::Timer::set(date_s, [date_s] { wake_up(date_s); });
}

std::string sentence_of(const std::exception &exception) {
    if (dynamic_cast<const std::bad_alloc *>(&exception)) return "out of memory";
    return std::string("SimGrid: ") + exception.what();
}

void note_error(const std::exception &exception) {
    if (state.error.empty()) state.error = sentence_of(exception);
}

// An activity must outlive its own completion signal.
void flow_ended(const s4u::Activity &activity) {
    auto *flow = const_cast<s4u::Activity *>(&activity);
    auto id = reinterpret_cast<uintptr_t>(flow->get_data<void>());
    if (id == 0) return;
    state.ended.push_back(flow);
    state.events->flow_done(state.events->context, static_cast<int>(id - 1));
}

void release_ended(double) {
    for (auto *flow : state.ended) flow->unref();
    state.ended.clear();
}

// Plain max-min sharing: the default model LV08 takes 3 % and more off every flow for TCP, and
// cross traffic charges flows for acknowledgements on the way back.
void configure() {
    s4u::Engine::set_config("network/model:CM02");
    s4u::Engine::set_config("network/crosstraffic:0");
}

void build_links(const double *link_bytes_per_s, int num_links) {
    auto *zone = (new FlowZone)->get_iface();
    state.from = zone->create_host("from", 1.0)->seal();
    state.to = zone->create_host("to", 1.0)->seal();
    state.links.resize(static_cast<size_t>(num_links));
    state.parts.resize(static_cast<size_t>(num_links));
    state.whole_bytes_per_s.assign(link_bytes_per_s, link_bytes_per_s + num_links);
    for (size_t i = 0; i < state.links.size(); i++) {
        if (link_bytes_per_s[i] <= 0) continue;
        state.links[i] = zone->create_link(std::to_string(i), link_bytes_per_s[i])->seal();
        state.parts[i] = state.links[i]->get_impl();
    }
    zone->seal();
}

// The sanitizers look for leaks at an exit that this process does not take. SimGrid leaks none.
void leaks_check() {
#ifdef MESHWRIGHT_SANITIZE
    __lsan_do_leak_check();
#endif
}

} // namespace

Status sgx_open(const double *link_bytes_per_s, int num_links) {
    try {
        static int argc = 2;
        static char name[] = "meshwright-sim", quiet[] = "--log=root.thresh:critical";
        static char *argv[] = {name, quiet, nullptr};
        static s4u::Engine engine(&argc, argv);
        signal(SIGINT, SIG_DFL); // which SimGrid takes
        configure();
        build_links(link_bytes_per_s, num_links);
        s4u::Activity::on_completion_cb(flow_ended);
        s4u::Engine::on_time_advance_cb(release_ended);
    } catch (const std::exception &exception) {
        return status_error(STATUS_MACHINE, "%s", sentence_of(exception).c_str());
    }
    return status_ok();
}

Status sgx_run(const SgxEvents *events) {
    try {
        state.events = events;
        s4u::Engine::get_instance()->run();
    } catch (const std::exception &exception) {
        note_error(exception);
    }
    if (state.error.empty()) return status_ok();
    return status_error(STATUS_MACHINE, "%s", state.error.c_str());
}

double sgx_now_s(void) {
    return s4u::Engine::get_clock();
}

void sgx_start_timer(double date_s, int id) {
    try {
        state.timeouts.push({date_s, state.num_timers++, id});
        wake_up_at(date_s);
    } catch (const std::exception &exception) {
        note_error(exception);
    }
}

void sgx_start_flow(const SgxRoute *route, double bytes, int id) {
    const int *links = route->links, num_links = route->num_links;
    try {
        state.route.clear();
        for (int i = 0; i < num_links; i++) {
            auto *part = state.parts.at(static_cast<size_t>(links[i]));
            state.route.insert(state.route.end(), 1U + route->more[i], part);
        }
        auto flow = s4u::Comm::sendto_init(state.from, state.to);
        flow->set_payload_size(static_cast<uint64_t>(bytes + 0.5));
        flow->add_ref();
        flow->set_data(reinterpret_cast<void *>(static_cast<uintptr_t>(id) + 1));
        // A flow is bound for good to what its links have when it starts: let it see all of it.
        links_show(links, num_links, true);
        flow->start();
        links_show(links, num_links, false);
    } catch (const std::exception &exception) {
        note_error(exception);
    }
}

void sgx_set_link(int link, double bytes_per_s) {
    try {
        if (!link_at(link)) return;
        link_at(link)->set_bandwidth(bytes_per_s);
        if (bytes_per_s < whole_of(link)) {
            state.bytes_per_s[link] = bytes_per_s;
        } else {
            state.bytes_per_s.erase(link);
        }
    } catch (const std::exception &exception) {
        note_error(exception);
    }
}

void sgx_exit(int code) {
    fflush(nullptr);
    leaks_check();
    _exit(code);
}
