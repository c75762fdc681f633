// What a sweep file is refused for, each with its one sentence: whoever reads it must know what to change.
#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/plan.hpp>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

struct Refusal {
  const char *text, *message;
};

void expect_refusals(std::initializer_list<Refusal> refusals) {
  for (const auto& [text, message] : refusals) {
    try {
      parse_sweep(text, "sweep.toml", "folder");
      ADD_FAILURE() << "not refused: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input) << text;
      EXPECT_EQ(error.what(), std::string("sweep.toml: ") + message) << text;
    }
  }
}

TEST(SweepRefusals, Syntax) {
  for (const char* text : {"p = = 2\n", "[train]\np = 2\np = 3\n", "[train\n", "a = \"\xff\"\n",
                           "[train]\n[train]\n", "x = [1, 2\n", "[grid]\np = [1.5 2]\n"})
    expect_bad_input({"sweep.toml: line "}, [&] { parse_sweep(text, "sweep.toml", "."); });
  expect_bad_input({"sweep.toml: line 3: "}, [&] { parse_sweep("[grid]\n\np = \n", "sweep.toml", "."); });
}

TEST(SweepRefusals, LettersStandInQuotesOnly) {
  for (const char* text : {"[grid]\n# \u00e9\n\u00e9 = 1\n", "[grid]\n\np = \u00e9\n", "\n\n[\u00e9]\n",
                           "\n\np = 0 \"\" \u00e9"})
    expect_bad_input({"sweep.toml: line 3: "}, [&] { parse_sweep(text, "sweep.toml", "."); });
  EXPECT_EQ(parse_sweep("[sweep] # \u00e9\nname = '\u00e9'\ndescription = \"\"\"\u00e9\\\n \u00e9\"\"\"\n",
                        "s", ".")
                .description,
            "\u00e9\u00e9");
  expect_refusals({{"[train]\nloss = \"a\\nb\"\n",
                    "[train] loss: \"a\\x0ab\": expected logistic, exponential, linear or sigmoid"}});
}

TEST(SweepRefusals, Tables) {
  expect_refusals({
      {"[trian]\np = 2\n",
       "line 1: there is no table \"trian\": expected [sweep], [data], [train], [grid], [[zip]], [[list]] or "
       "[record]; did you mean \"train\"?"},
      {"\np = 2\n",
       "line 2: there is no table \"p\": expected [sweep], [data], [train], [grid], [[zip]], [[list]] or "
       "[record]"},
      {"data = 3\n", "[data] is 3: expected a table"},
      {"record = 3\n", "record is 3: expected a table"},
      {"sweep = 3\n", "sweep is 3: expected a table"},
      {"[sweep]\ntitle = \"x\"\n", "[sweep] has no key \"title\""},
      {"[sweep]\nnam = \"x\"\n", "[sweep] has no key \"nam\"; did you mean \"name\"?"},
      {"[sweep]\nname = 3\n", "[sweep] name: 3 is not a text"},
      {"[zip]\np = [1]\n", "[zip] has single brackets: expected [[zip]]"},
      {"zip = 3\n", "zip is 3: expected [[zip]]"},
      {"list = [1]\n", "list is 1: expected a table"},
      {"list = []\n", "list has no tables: expected one or more"},
      {"[[zip]]\n", "a [[zip]] has no axes: expected two or more"},
  });
}

TEST(SweepRefusals, Names) {
  expect_refusals({
      {"[train]\nlrr = 0.1\n", "[train] has no setting \"lrr\"; did you mean \"lr\"?"},
      {"[train]\nseed = 1\n", "[train] has \"seed\", which belongs to [data]"},
      {"[data]\np = 2\n", "[data] has \"p\", which belongs to [train]"},
      {"[grid]\nentropy-beta = [2]\n",
       "[grid] has no setting \"entropy-beta\"; did you mean \"entropy_beta\"?"},
      {"[[zip]]\nstep = [2]\n", "[[zip]] has no setting \"step\"; did you mean \"steps\"?"},
      {"[[list]]\nzzzzzzzz = 2\n", "[[list]] has no setting \"zzzzzzzz\""},
      {"[grid]\n\"a\\nb\" = [2]\n", "[grid] has no setting \"a\\x0ab\""},
  });
}

TEST(SweepRefusals, Values) {
  expect_refusals({
      {"[grid]\np = [0.9]\n", "axis \"p\": 0.9: expected a finite number greater than 1"},
      {"[grid]\np = [2, inf]\n", "axis \"p\": inf: expected a finite number greater than 1"},
      {"[grid]\np = [nan]\n", "axis \"p\": nan: expected a finite number greater than 1"},
      {"[train]\np = 1\n", "[train] p: 1: expected a finite number greater than 1"},
      {"[train]\nlr = 0\n", "[train] lr: 0: expected a finite number greater than 0"},
      {"[train]\nlr = \"0.1\"\n", "[train] lr: \"0.1\": expected a finite number greater than 0"},
      {"[train]\nlr = [0.1]\n",
       "[train] lr: a list: expected a finite number greater than 0; values that vary belong under [grid]"},
      {"[train]\nsteps = 1.5\n", "[train] steps: 1.5: expected a whole number, 0 or more"},
      {"[train]\nsteps = 1e300\n", "[train] steps: 1e+300: expected a whole number, 0 or more"},
      {"[train]\nsteps = -1\n", "[train] steps: -1: expected a whole number, 0 or more"},
      {"[train]\nsteps = true\n", "[train] steps: true: expected a whole number, 0 or more"},
      {"[train]\nsteps = 1979-05-27\n", "[train] steps: a date: expected a whole number, 0 or more"},
      {"[train]\nsteps = {a = 1}\n", "[train] steps: a table: expected a whole number, 0 or more"},
      {"[train]\nnormalized = 1\n", "[train] normalized: 1: expected true or false"},
      {"[train]\nsaturation = 2\n", "[train] saturation: 2: expected a number from 0 to 1"},
      {"[train]\nbeta1 = 1\n", "[train] beta1: 1: expected a number in [0, 1)"},
      {"[train]\nloss = 3\n",
       "[train] loss: 3: expected \"logistic\", \"exponential\", \"linear\" or \"sigmoid\""},
      {"[train]\nloss = \"hinge\"\n",
       "[train] loss: \"hinge\": expected logistic, exponential, linear or sigmoid"},
      {"[train]\nloss = \"\"\n", "[train] loss: \"\": expected logistic, exponential, linear or sigmoid"},
      {"[grid]\nloss = [\"logistic\", \"hinge\"]\n",
       "axis \"loss\": \"hinge\": expected logistic, exponential, linear or sigmoid"},
      {"[train]\nnorm = 0.5\n",
       "[train] norm: \"0.5\": expected a number from 1 to inf, frobenius, nuclear, spectral or schatten:P"},
      {"[train]\ninit_seed = \"mine\"\n",
       "[train] init_seed: \"mine\": expected a whole number from 0 to 2^63 - 1, \"seed\" or \"own\""},
      {"[train]\ninit_seed = true\n",
       "[train] init_seed: true: expected a whole number from 0 to 2^63 - 1, \"seed\" or \"own\""},
      {"[train]\ninit_seed = -1\n",
       "[train] init_seed: -1: expected a whole number from 0 to 2^63 - 1, \"seed\" or \"own\""},
      {"[train]\ninit = \"one\"\n",
       "[train] init: \"one\": expected zero, normal, normal:STD, uniform, file:W0.npy or file:BLOCKS.npz"},
      {"[train]\nparams = \"V\"\n", "[train] params: \"V\": expected W, KQ or prompt"},
      {"[train]\nmomentum = \"ema:2\"\n",
       "[train] momentum: momentum's beta is 2: expected a number in [0, 1)"},
      {"[train]\ntrain = \"W,x\"\n", "[train] train: block is \"x\": expected W, K, Q, p or v"},
      {"[train]\noptimizer = \"sgd\"\n",
       "[train] optimizer: \"sgd\": expected md, gd, steepest, sign, coordinate, spectral, signum, "
       "muon, adam, lion or adagrad; did you mean \"gd\"?"},
      {"[data]\ngenerator = \"spere\"\n",
       "[data] generator: \"spere\": expected sphere, joint, single-input, multi-input, joint-prompt, "
       "loss-comparison, visualization1, visualization2, relu or orthonormal; did you mean \"sphere\"?"},
      {"[data]\nsamples = 0\n", "[data] samples: 0: expected a whole number, 1 or more"},
      {"[data]\nseed = -4\n", "[data] seed: -4: expected a whole number from 0 to 2^63 - 1"},
      {"[data]\nscore = 0\n", "[data] score: 0: expected a finite number greater than 0"},
      {"[data]\nquery_from = \"none\"\n", "[data] query_from: \"none\": expected draw, first, last or all"},
      {"[data]\nfile = \"\"\n", "[data] file: \"\": expected the path of an .npz file"},
  });
}

TEST(SweepRefusals, Axes) {
  expect_refusals({
      {"[grid]\np = 2\n",
       "axis \"p\": 2 is neither a list of values nor a range; a value that does not vary belongs under [train]"},
      {"[grid]\nloss = \"logistic\"\n",
       "axis \"loss\": \"logistic\" is not a list of values; a value that does not vary belongs under [train]"},
      {"[grid]\np = []\n", "axis \"p\" has no values: expected one or more"},
      {"[grid]\np = [2, 3, 2.0]\n", "axis \"p\": 2 is given twice"},
      {"[grid]\nnormalized = [true, true]\n", "axis \"normalized\": true is given twice"},
      {"[grid]\np = [2, \"default\"]\n", "axis \"p\": \"default\": expected a finite number greater than 1"},
      {"[grid]\np = \"1:3\"\n",
       "axis \"p\": \"1:3\": expected a list or a range such as \"log:1e-3:1:7\" or \"lin:0:1:5\""},
      {"[grid]\nseed = \"1-3\"\n",
       "axis \"seed\": \"1-3\": expected a list or a range such as \"1:100\", \"1:100:5\" or "
       "\"log:10:1000:3\""},
      {"[grid]\nseed = \"3:1\"\n", "axis \"seed\": \"3:1\": it ends at 1, before its start 3"},
      {"[grid]\nseed = \"1:3:0\"\n", "axis \"seed\": \"1:3:0\": the step 0 is not >= 1"},
      {"[grid]\nseed = \"-3:1\"\n", "axis \"seed\": \"-3:1\": -3 is not >= 0"},
      {"[grid]\nlr = \"log:0:1:5\"\n", "axis \"lr\": \"log:0:1:5\": the ends of log are not > 0"},
      {"[grid]\nlr = \"log:1:2\"\n",
       "axis \"lr\": \"log:1:2\": expected a list or a range such as \"log:1e-3:1:7\" or \"lin:0:1:5\""},
      {"[grid]\nlr = \"lin:1:2:1\"\n", "axis \"lr\": \"lin:1:2:1\": 1 values: expected 2 or more"},
      {"[grid]\np = \"lin:1:2:3\"\n", "axis \"p\": 1: expected a finite number greater than 1"},
      {"[grid]\nsteps = \"log:1:3:9\"\n", "axis \"steps\": 1 is given twice"},
      {"[grid]\nseed = [1]\n[[zip]]\nseed = [1]\n", "axis \"seed\" is given in two places: expected one"},
      {"[grid]\np = [2]\n[[list]]\np = 3\n", "axis \"p\" is given in two places: expected one"},
      {"[train]\np = 2\n[grid]\np = [1.5]\n",
       "axis \"p\" of [grid] is fixed in [train] as well: expected one of the two"},
      {"[data]\nseed = 2\n[[zip]]\nseed = [1]\n",
       "axis \"seed\" of [[zip]] is fixed in [data] as well: expected one of the two"},
      {"[[zip]]\np = [1.5, 2]\nsteps = [1, 2, 3]\n",
       "[[zip]]: axis \"p\" has 2 values and axis \"steps\" 3: expected equally many"},
      {"[[list]]\np = 0.5\n", "[[list]] number 1: p: 0.5: expected a finite number greater than 1"},
      {"[[list]]\np = 1.5\n[[list]]\np = 1.5\n",
       "run 1 (p = 1.5): it has the same settings as run 0 (p = 1.5)"},
      {"[grid]\nschedule = [\"power\", \"power:0.5\"]\n",
       "run 1 (schedule = power:0.5): it has the same settings as run 0 (schedule = power)"},
  });
}

// Refused at once and without memory for the runs: a test that took it would not end.
TEST(SweepRefusals, TooManyRuns) {
  expect_refusals({
      {"[grid]\nseed = \"0:9223372036854775807\"\n",
       "the axes make 9223372036854775808 runs or more: expected at most 10000000"},
      {"[grid]\nlr = \"lin:1:2:9223372036854775807\"\n",
       "the axes make 9223372036854775808 runs or more: expected at most 10000000"},
      {"[[list]]\np = 2\n[[list]]\np = 3\n[grid]\nseed = \"1:9999999\"\n",
       "the axes make 19999998 runs or more: expected at most 10000000"},
  });
  expect_bad_input({"expected at most 5"},
                   [] { parse_sweep("[grid]\nseed = \"1:6\"\n", "s", ".", {.max_runs = 5}); });
  EXPECT_EQ(parse_sweep("[grid]\nseed = \"1:5\"\n", "s", ".", {.max_runs = 5}).runs.size(), 5u);
}

TEST(SweepRefusals, WhatDoesNotGoTogether) {
  expect_refusals({
      {"[grid]\noptimizer = [\"md\", \"sign\"]\np = [1.5, 2]\n",
       "run 2 (optimizer = sign, p = 1.5): p is given, but optimizer is sign: only md and gd take it; "
       "steepest "
       "takes norm"},
      {"[train]\noptimizer = \"steepest\"\n",
       "run 0: norm is missing: optimizer steepest takes norm 1, 2, inf, NUMBER, frobenius, nuclear, "
       "spectral, schatten:P"},
      {"[train]\noptimizer = \"sign\"\nnormalized = false\n",
       "run 0: normalized is false, but optimizer is sign: its steps are normalized by definition; steepest "
       "takes any "
       "norm and need not be"},
      {"[train]\noptimizer = \"adam\"\nnormalized = true\n",
       "run 0: normalized is true, but optimizer is adam: only md, gd, steepest, sign, coordinate, spectral, "
       "signum and muon take it"},
      {"[train]\ngeometry = \"entropy\"\np = 3\n",
       "run 0: p is given, but geometry is entropy: it has entropy_beta instead"},
      {"[train]\noptimizer = \"adagrad\"\n[record]\nsolutions = [\"own\"]\n",
       "run 0: solution own is in the norm \"own\", but theory names no norm whose margin adagrad maximizes: expected a norm such as \"2\""},
      {"[train]\neps_value = 1e-9\n", "run 0: eps_value is given, but eps is exact: only paper uses it"},
      {"[train]\nentropy_beta = 2\n",
       "run 0: entropy_beta is given, but geometry is lp: only entropy has one"},
      {"[train]\nschedule = \"polyak\"\nloss = \"linear\"\n",
       "run 0: schedule is polyak with the linear loss, which has no lower bound for Polyak's step to aim "
       "at"},
      {"[train]\nrank = 2\n", "run 0: rank is 2, but params is W: only KQ has a rank"},
      {"[train]\nkey_weights = \"A.npy\"\n",
       "run 0: key_weights is given, but params is W: only a prompt has them"},
      {"[train]\nparams = \"KQ\"\n[grid]\nrank = [10, 11]\n",
       "run 1 (rank = 11): rank is 11: expected 1 to 10 (the dimension), or 0 for the dimension"},
      {"[train]\nparams = \"KQ\"\ninit = \"zero\"\n",
       "run 0: K and Q both start at 0, where the gradient is 0: start them from uniform, normal or a file"},
      {"[train]\nmask = \"causal\"\n",
       "run 0: a causal mask needs queries that are tokens of their sequence: give query_index instead of Z"},
      {"[train]\nhead = \"relu\"\n", "run 0: the data have no weights V for the head relu: give the array V"},
      {"[train]\ntrain = \"K\"\n", "run 0: cannot train K: parameterization W has no such block"},
      {"[train]\ninit_seed = 3\n",
       "run 0: init_seed is given, but init is zero: only uniform and normal are random"},
      {"[train]\ninit_seed = \"own\"\n",
       "run 0: init_seed is given, but init is zero: only uniform and normal are random"},
      {"[data]\ngenerator = \"joint\"\n",
       "run 0: the data have no decoder v: give the array v, or train v too"},
      {"[data]\ngenerator = \"joint\"\nseed = 3\n",
       "run 0: seed is given, but the joint data have fixed sizes and no seed"},
      {"[data]\ngenerator = \"relu\"\nqueries = 3\n",
       "run 0: queries is given, but the relu data take samples, tokens, dim, seed only"},
      {"[data]\nmin_tokens = 9\n", "run 0: min_tokens is 9: expected 1 to 8, the number of tokens"},
  });
}

TEST(SweepRefusals, Files) {
  expect_refusals({
      {"[data]\nfile = \"missing.npz\"\n", "run 0: file is \"folder/missing.npz\": there is no such file"},
      {"[data]\nfile = \"missing.npz\"\nsamples = 3\n",
       "run 0: samples is given, but the data are those of the file missing.npz"},
      {"[data]\nfile = \"missing.npz\"\ngenerator = \"sphere\"\n",
       "run 0: generator is given, but the data are those of the file missing.npz"},
      {"[train]\nparams = \"prompt\"\nkey_weights = \"A.npy\"\n",
       "run 0: key_weights is \"folder/A.npy\": there is no such file"},
      {"[train]\ninit = \"file:W0.npy\"\n", "run 0: init is \"folder/W0.npy\": there is no such file"},
  });
}

}  // namespace
}  // namespace attmirror::test
