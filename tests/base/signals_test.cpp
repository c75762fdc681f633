#include "base/signals.hpp"

#include <gtest/gtest.h>
#include <signal.h>

namespace attmirror {
namespace {

using Handler = void (*)(int);

Handler current_handler(int number) {
  struct sigaction action {};
  sigaction(number, nullptr, &action);
  return action.sa_handler;
}

int calls_of_mine = 0;
void mine(int) { ++calls_of_mine; }

// Puts back what the test program had, whatever a test does.
class Signals : public ::testing::Test {
 protected:
  void SetUp() override {
    sigaction(SIGINT, nullptr, &interrupt_);
    sigaction(SIGTERM, nullptr, &terminate_);
    sigaction(SIGHUP, nullptr, &hang_up_);
    signal(SIGHUP, SIG_DFL);  // whoever runs the tests under nohup has it ignored
  }
  void TearDown() override {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGTERM, &terminate_, nullptr);
    sigaction(SIGHUP, &hang_up_, nullptr);
  }

 private:
  struct sigaction interrupt_ {
  }, terminate_{}, hang_up_{};
};

TEST_F(Signals, AreNotedAndOldHandlersComeBack) {
  calls_of_mine = 0;
  signal(SIGINT, mine);
  {
    const SignalGuard guard;
    EXPECT_EQ(SignalGuard::interrupted(), 0);
    raise(SIGINT);
    EXPECT_EQ(SignalGuard::interrupted(), SIGINT);
    EXPECT_EQ(calls_of_mine, 0);
  }
  EXPECT_EQ(SignalGuard::interrupted(), SIGINT);  // still to be read when the run has ended
  EXPECT_EQ(current_handler(SIGINT), &mine);
  raise(SIGINT);
  EXPECT_EQ(calls_of_mine, 1);
}

TEST_F(Signals, TerminationIsARequestToo) {
  const SignalGuard guard;
  raise(SIGTERM);
  EXPECT_EQ(SignalGuard::interrupted(), SIGTERM);
}

TEST_F(Signals, SoIsATerminalThatWasClosed) {
  const SignalGuard guard;
  raise(SIGHUP);
  EXPECT_EQ(SignalGuard::interrupted(), SIGHUP);
  EXPECT_EQ(current_handler(SIGINT), SIG_DFL);
}

TEST_F(Signals, UnderNohupAClosedTerminalIsNothing) {
  signal(SIGHUP, SIG_IGN);
  const SignalGuard guard;
  raise(SIGHUP);
  EXPECT_EQ(SignalGuard::interrupted(), 0);
  EXPECT_EQ(current_handler(SIGHUP), SIG_IGN);
}

TEST_F(Signals, ANewGuardForgetsTheLastSignal) {
  {
    const SignalGuard guard;
    raise(SIGINT);
  }
  const SignalGuard guard;
  EXPECT_EQ(SignalGuard::interrupted(), 0);
  raise(SIGINT);
  EXPECT_EQ(SignalGuard::interrupted(), SIGINT);
}

TEST_F(Signals, RequestAStop) {
  StopRequest stop;
  {
    const SignalGuard guard;
    stop = SignalGuard::stop();
    EXPECT_FALSE(stop.requested());
    raise(SIGTERM);
    EXPECT_TRUE(stop.requested());
  }
  EXPECT_TRUE(stop.requested());
  const SignalGuard guard;
  EXPECT_FALSE(SignalGuard::stop().requested());
}

TEST_F(Signals, TheFirstSignalGivesAllBackToTheSystem) {
  const SignalGuard guard;
  raise(SIGINT);
  EXPECT_EQ(current_handler(SIGHUP), SIG_DFL);
  EXPECT_EQ(current_handler(SIGINT), SIG_DFL);
  EXPECT_EQ(current_handler(SIGTERM), SIG_DFL);
}

TEST_F(Signals, NestedGuardsLeaveTheHandlersToTheOutermost) {
  signal(SIGINT, mine);
  const SignalGuard outer;
  const Handler installed = current_handler(SIGINT);
  {
    const SignalGuard inner;
    raise(SIGINT);
  }
  EXPECT_EQ(SignalGuard::interrupted(), SIGINT);
  EXPECT_NE(installed, &mine);
  EXPECT_EQ(current_handler(SIGINT), SIG_DFL);
}

TEST_F(Signals, WhatTheParentIgnoresStaysIgnored) {
  signal(SIGINT, SIG_IGN);
  {
    const SignalGuard guard;
    raise(SIGINT);
    EXPECT_EQ(SignalGuard::interrupted(), 0);
    raise(SIGTERM);
    EXPECT_EQ(SignalGuard::interrupted(), SIGTERM);
  }
  EXPECT_EQ(current_handler(SIGINT), SIG_IGN);
}

using SignalsDeathTest = Signals;

TEST_F(SignalsDeathTest, ASecondCtrlCKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        signal(SIGINT, SIG_DFL);
        const SignalGuard guard;
        raise(SIGINT);
        if (SignalGuard::interrupted() != SIGINT) _exit(3);
        raise(SIGINT);
        _exit(4);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace attmirror
