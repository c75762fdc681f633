// attmirror path: the least loss within balls of growing radius, and how its direction nears the max-margin solution.
#include "base/progress.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/field_options.hpp"
#include "cli/margin_plan.hpp"
#include "cli/masked_data.hpp"
#include "cli/options.hpp"
#include "cli/training.hpp"
#include "descent/path_json.hpp"
#include "descent/saved_model.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/descent/comparison.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct PathCommand {
  CommonOptions common;
  std::filesystem::path data, output;
  Given model;
  std::string norm, radii = "1:1e3:16", start, select;
  std::int64_t starts = PathOptions{}.starts, max_iterations = PathOptions{}.max_evaluations;
  std::uint64_t seed = 0;
  double tol = PathOptions{}.tol, decoder_scale = 1, decoder_power = 1;
  bool resume = false, overwrite = false;
};

void add_path_options(CLI::App& app, PathCommand& o) {
  add_path(app, "data", o.data, "FILE", "the dataset: .npz with X, Y, Z and v (see attmirror info)")
      ->required();
  add_path(app, "-o,--output", o.output, "FOLDER",
           "folder to keep the path in; without it the result is only printed");

  const char* group = "Path";
  add_text(
      app, "--norm", o.norm, "2|NUMBER|frobenius|schatten:P|nuclear",
      "the norm of the balls; a NUMBER is p, 1 < p < infinity; by default 2, and nuclear for KQ, which has no other")
      ->group(group);
  add_text(
      app, "--radii", o.radii, "FROM:TO:COUNT|LIST",
      "COUNT radii from FROM to TO, each the same multiple of the one before, or a list such as 1,10,100")
      ->group(group);
  add_count(
      app, "--starts", o.starts,
      "random directions tried at each radius, besides the solution of the radius before and the gradient at 0")
      ->group(group);
  add_seed(app, "--init-seed", o.seed, "seed of the random directions")->group(group);
  add_text(app, "--start", o.start, "file:PATH|run:RUN",
           "a local path: follow this direction from the largest radius down; file:W0.npy, file:BLOCKS.npz "
           "or the weights of a run")
      ->group(group);
  add_text(app, "--select", o.select, "global|run:RUN|file:PATH|TOKENS",
           "a local path: follow the max-margin solution of these tokens")
      ->group(group);
  add_number(app, "--tol", o.tol, "the stationarity to reach, 1 - <-grad, W> / (R ||grad||_*)")->group(group);
  add_count(app, "--max-iterations", o.max_iterations, "the most gradients for one start at one radius")
      ->group(group);
  add_number(app, "--decoder-scale", o.decoder_scale,
             "where v is trained, its radius is this times R^decoder-power")
      ->group(group);
  add_number(app, "--decoder-power", o.decoder_power, "see --decoder-scale")->group(group);
  add_flag(
      app, "--resume", o.resume,
      "continue the path in the folder: radii that are finished are not computed again, and the result has the "
      "same bits as without the interruption")
      ->group(group);
  add_flag(app, "--overwrite", o.overwrite, "replace the path in the folder")->group(group);

  add_field_options(app, model_fields(), o.model, "Model",
                    {"params", "rank", "key_weights", "loss", "mask", "train"});
}

// The max-margin problem whose solution a path of this model nears.
MarginProblem problem_of(const Attention& model, const Selection& tokens) {
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization()))
    return PromptSvm{.tokens = tokens, .key_weights = prompt->key_weights};
  return AttentionSvm{tokens};
}

Parameters direction_of(const Attention& model, const Matrix& solution) {
  Parameters start;
  if (model.has_block(Block::p))
    start.p = solution;
  else
    start.W = solution;
  return start;
}

ModelPlan plan_of(const PathCommand& options) {
  Given given = options.model;
  if (options.start.starts_with("file:")) given.put("init", options.start);
  return load_files(plan_model(given));
}

PathOptions path_options(const PathCommand& options) {
  PathOptions path;
  path.norm = options.norm.empty()
                  ? (options.model.word("params") == "KQ" ? Norm::nuclear() : Norm::frobenius())
                  : parse_norm(options.norm);
  path.radii = parse_radii(options.radii);
  path.decoder_scale = options.decoder_scale;
  path.decoder_power = options.decoder_power;
  if (options.starts < 0 || options.starts > 1'000'000)
    throw bad_input(fmt::format("starts is {}: expected 0 to 1000000", options.starts));
  path.starts = static_cast<int>(options.starts);
  path.seed = options.seed;
  path.tol = options.tol;
  if (options.max_iterations < 1)
    throw bad_input(fmt::format("max-iterations is {}: expected 1 or more", options.max_iterations));
  path.max_evaluations = options.max_iterations;
  path.threads = static_cast<int>(options.common.threads);
  return path;
}

void check_combination(const CLI::App& app, const PathCommand& options) {
  if (app.count("--start") > 0 && app.count("--select") > 0)
    throw bad_input("both --start and --select are given: expected one of them");
  if (app.count("--start") > 0 && !options.start.starts_with("file:") && !options.start.starts_with("run:"))
    throw bad_input(fmt::format("start is \"{}\": expected file:PATH or run:RUN", options.start));
  if (app.count("--start") + app.count("--select") > 0)
    for (const char* name : {"--starts", "--init-seed"})
      if (app.count(name) > 0)
        throw bad_input(fmt::format("{} is given with a local path, which has one start", name));
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if ((options.resume || options.overwrite) && options.output.empty())
    throw bad_input(fmt::format("{} is given without a folder: give -o FOLDER",
                                options.resume ? "--resume" : "--overwrite"));
}

// The run's weights or tokens, on the data of this command.
SavedRun load_start_run(const std::string& folder, const Dataset& data, const PathCommand& options) {
  SavedRun run = load_trained_run(folder);
  if (run.config.data_fingerprint != data.fingerprint())
    throw bad_input(fmt::format("the run in {} is of other data than {}", folder, options.data.string()));
  return run;
}

// The direction of a local path, if one is asked for.
void choose_start(const PathCommand& options, const Attention& model, const ModelPlan& plan,
                  PathOptions& path) {
  if (options.start.empty() && options.select.empty()) return;
  path.kind = PathKind::local;
  if (options.start.starts_with("file:")) {
    path.given = {plan.init.given};
    return;
  }
  const Dataset& data = model.data();
  if (options.start.starts_with("run:")) {
    const SavedRun run = load_start_run(options.start.substr(4), data, options);
    const bool prompt = model.has_block(Block::p);
    if (prompt != (run.config.params == "prompt"))
      throw bad_input(fmt::format("the run in {} has params {}: expected those of the path, {}",
                                  options.start.substr(4), run.config.params,
                                  to_string(model.parameterization())));
    path.given = {direction_of(model, attention_weights(run.parameters))};
    if (model.is_trained(Block::v)) path.given.front().v = run.parameters.v;
    return;
  }
  Selection tokens;
  if (options.select.starts_with("run:")) {
    const SavedRun run = load_start_run(options.select.substr(4), data, options);
    tokens = selected_tokens(model_of(run, data), run.parameters);
  } else {
    tokens = parse_selection(options.select, data, options.data);
  }
  const MarginSolution svm = max_margin(data, problem_of(model, tokens), path.norm);
  if (svm.status != MarginStatus::certified)
    throw bad_input(
        fmt::format("the max-margin problem of the tokens {} is {}: there is no solution to start from",
                    short_list(tokens.tokens), to_string(svm.status)));
  path.given = {direction_of(model, svm.W)};
  if (!model.is_trained(Block::v)) return;
  const Norm decoder_norm = model.has_block(Block::K) ? Norm::frobenius() : path.norm;
  const MarginSolution decoder = max_margin(data, DecoderSvm{tokens}, decoder_norm);
  if (decoder.status == MarginStatus::certified) path.given.front().v = decoder.W;
}

// One point against the certified max-margin solution of its own tokens.
struct Compared {
  MarginStatus status = MarginStatus::stopped;
  double norm = std::numeric_limits<double>::quiet_NaN();
  Comparison comparison;
};

std::vector<Compared> compare_points(const Attention& model, const RegularizationPath& path,
                                     const PathCommand& options) {
  std::map<std::vector<std::int64_t>, MarginSolution> solved;
  std::vector<Compared> result;
  const Norm& norm = path.options.norm;
  for (const PathPoint& point : path.points) {
    Compared& one = result.emplace_back();
    if (point.selected.tokens.empty()) continue;
    auto found = solved.find(point.selected.tokens);
    if (found == solved.end())
      found = solved
                  .emplace(point.selected.tokens,
                           max_margin(model.data(), problem_of(model, point.selected), norm,
                                      {.threads = static_cast<int>(options.common.threads)}))
                  .first;
    one.status = found->second.status;
    if (one.status != MarginStatus::certified) continue;
    one.norm = found->second.norm;
    const double p = norm.is_entrywise() ? norm.p() : 2;
    one.comparison =
        compare(model, found->second.W, attention_weights(point.parameters), point.selected, {p, norm});
  }
  return result;
}

std::string number(const char* format, double value) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
}

std::string summary(const Attention& model, const RegularizationPath& path,
                    const std::vector<Compared>& compared, const PathCommand& options) {
  const bool joint = model.is_trained(Block::v);
  const std::string norm = to_string(path.options.norm);
  std::string text = fmt::format(
      "{}: {}\n{} path of {} in balls of norm {}{}\n\n", options.data.string(), to_string(model.data()),
      to_string(path.options.kind), to_string(model.trained()), norm,
      joint ? fmt::format(", ‖v‖ <= {:g} R^{:g}", path.options.decoder_scale, path.options.decoder_power)
            : "");
  Table table;
  table.columns = {{"R"},
                   {joint ? "log loss" : "loss"},
                   {"stationarity"},
                   {"gradients"},
                   {"status", Align::left},
                   {"selected tokens", Align::left},
                   {"1 - correlation"},
                   {"Bregman"},
                   {"margin ratio"}};
  for (std::size_t k = 0; k < path.points.size(); ++k) {
    const PathPoint& point = path.points[k];
    const Comparison& c = compared[k].comparison;
    table.rows.push_back({fmt::format("{:.6g}", point.radius),
                          number("{:.9g}", joint ? point.log_loss : point.loss), number("{:.1e}", point.gap),
                          fmt::format("{}", point.evaluations), std::string(to_string(point.status)),
                          short_list(point.selected.tokens), number("{:.3e}", 1 - c.correlation),
                          path.options.norm.is_entrywise() ? number("{:.3e}", c.directional_bregman) : "-",
                          number("{:.6f}", c.margin_ratio)});
  }
  text += to_text(table);
  text +=
      "\nThe last three columns compare with the max-margin solution of the selected tokens in the same norm (-: none).\n";
  if (!options.output.empty())
    text += fmt::format("files  {} (config.json, metrics.jsonl, path.npz)\n", options.output.string());
  return text;
}

Json answer(const Attention& model, const RegularizationPath& path, const std::vector<Compared>& compared,
            const PathCommand& options) {
  Json points = Json::array();
  for (std::size_t k = 0; k < path.points.size(); ++k) {
    const PathPoint& point = path.points[k];
    const Compared& one = compared[k];
    Json json = point_json(point, model.data());
    if (!model.is_trained(Block::v)) json["decoder_radius"] = Json();
    json["margin_status"] = point.selected.tokens.empty() ? Json() : Json(to_string(one.status));
    json["margin_norm"] = finite_or_null(one.norm);
    json["correlation"] = finite_or_null(one.comparison.correlation);
    json["directional_bregman"] =
        path.options.norm.is_entrywise() ? finite_or_null(one.comparison.directional_bregman) : Json();
    json["margin_ratio"] = finite_or_null(one.comparison.margin_ratio);
    points.push_back(std::move(json));
  }
  return {{"status", path.interrupted   ? "interrupted"
                     : path.converged() ? "converged"
                                        : "stopped"},
          {"kind", to_string(path.options.kind)},
          {"norm", to_string(path.options.norm)},
          {"params", to_string(model.parameterization())},
          {"points", points},
          {"output", options.output.empty() ? Json() : Json(options.output.string())}};
}

// The folder is ours from here on, so that nobody else's path is replaced by this one hours later.
std::unique_ptr<PathFolder> open_folder(const PathCommand& options) {
  if (options.output.empty()) return nullptr;
  std::error_code none;
  if (std::filesystem::exists(options.output, none) && !std::filesystem::is_directory(options.output, none))
    throw bad_input(fmt::format("{} is a file: expected a folder", options.output.string()));
  auto folder = std::make_unique<PathFolder>(options.output);
  if (folder->holds_path() && !options.overwrite && !options.resume)
    throw bad_input(fmt::format(
        "{} already holds a path: give --resume to continue it, --overwrite to replace it, or another folder",
        options.output.string()));
  return folder;
}

// Each radius is kept as soon as it is finished, unless radii go by faster than files are written.
RegularizationPath follow_path(const Attention& model, const PathOptions& settings,
                               const PathSources& sources, std::vector<PathPoint> points, PathFolder* folder,
                               bool quiet) {
  ProgressOptions progress_options;
  progress_options.label = "path";
  progress_options.total = 1000;
  progress_options.unit = "";
  progress_options.quiet = quiet;
  Progress progress(stderr, progress_options);
  CheckpointClock clock(0);
  const std::size_t before = points.size();
  // Not before the radii have been held against the points that are there.
  bool told = before == 0 || quiet;
  const auto tell = [&] {
    if (!std::exchange(told, true))
      note(fmt::format("resuming after {} of {} radii", before, settings.radii.size()));
  };
  std::vector<PathPoint> finished = points;
  bool begun = false;
  // What is wrong with the points that are there is told before a file is touched.
  const auto keep = [&] {
    if (!begun && before > 0) folder->resume(model, settings, sources);
    if (!begun && before == 0) folder->begin(model, settings, sources);
    begun = true;
    folder->save_points(model, points);
  };
  PathCallbacks callbacks;
  callbacks.on_point = [&](const PathPoint& point) {
    tell();
    points.push_back(point);
    if (folder && (!begun || clock.due())) clock.time(keep);
  };
  callbacks.on_progress = [&](double share) {
    tell();
    progress.update(static_cast<std::int64_t>(1000 * share));
  };
  callbacks.stop = SignalGuard::stop();
  RegularizationPath path = regularization_path(model, settings, callbacks, std::move(finished));
  tell();
  progress.finish();
  if (folder && (points.size() > before || before == 0)) keep();
  return path;
}

int run_path(const CLI::App& app, const PathCommand& options) {
  check_combination(app, options);
  PathOptions path_settings = path_options(options);
  const ModelPlan plan = plan_of(options);
  const Dataset data = load_masked_dataset(options.data, plan.mask);
  const Attention model = make_attention(data, plan);
  choose_start(options, model, plan, path_settings);
  path_settings.validate(model);
  const std::unique_ptr<PathFolder> folder = open_folder(options);
  const PathSources sources{.data = options.data,
                            .key_weights = plan.key_weights_path,
                            .start = !options.start.empty()   ? options.start
                                     : options.select.empty() ? ""
                                                              : "select " + options.select};
  std::vector<PathPoint> points;
  if (options.resume) points = folder->finished(model, path_settings, sources);

  const SignalGuard guard;  // from here on a signal is a request: what is done is written
  const RegularizationPath path =
      follow_path(model, path_settings, sources, std::move(points), folder.get(), options.common.quiet);
  const std::vector<Compared> compared = compare_points(model, path, options);
  if (options.common.json)
    print_json(answer(model, path, compared, options));
  else if (!options.common.quiet)
    print(summary(model, path, compared, options));
  if (path.interrupted) {
    note(fmt::format("interrupted after {} of {} radii{}", path.points.size(), path.options.radii.size(),
                     options.output.empty() ? ""
                     : options.overwrite ? "; the same command with --resume instead of --overwrite continues"
                                         : "; the same command with --resume continues"));
    return signalled + SignalGuard::interrupted();
  }
  if (path.converged()) return done;
  const auto open = std::ranges::count_if(
      path.points, [](const PathPoint& p) { return p.status != PointStatus::converged; });
  note(fmt::format("{} of {} radii did not reach the stationarity {:g}", open, path.points.size(),
                   path.options.tol));
  return negative;
}

}  // namespace

Subcommand add_path_command(CLI::App& parent) {
  auto options = std::make_shared<PathCommand>();
  CLI::App& app = *parent.add_subcommand("path", "follow the least loss within balls of growing radius");
  add_path_options(app, *options);
  add_common_options(app, options->common);
  app.footer(
      "Exit code 0: every radius reached the stationarity. 1: one did not.\n\n"
      "Examples:\n"
      "  attmirror path data.npz --norm 2 --radii 1:1e3:16 -o path/\n"
      "  attmirror path data.npz --norm 2 --radii 1:1e3:16 -o path/ --resume\n"
      "  attmirror path data.npz --params KQ --norm nuclear --radii 1,10,100\n"
      "  attmirror path data.npz --norm 3 --select run:run/ --radii 10:1e6:11\n"
      "  attmirror path joint.npz --params prompt --train p,v --json");
  return {&app, &options->common, [options, &app] { return run_path(app, *options); }};
}

}  // namespace attmirror::cli
