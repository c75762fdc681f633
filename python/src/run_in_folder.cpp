#include "run_in_folder.hpp"

namespace attmirror::python {

std::optional<FolderOptions> read_folder_options(const nb::object& options) {
  if (options.is_none()) return std::nullopt;
  return FolderOptions{nb::cast<std::string>(options[0]), nb::cast<bool>(options[1]),
                       nb::cast<bool>(options[2]), nb::cast<double>(options[3])};
}

void keep_data(const std::filesystem::path& file, const Dataset& data) {
  if (!std::filesystem::exists(file)) return save_dataset(file, data);
  if (load_dataset(file).fingerprint() != data.fingerprint())
    throw bad_input(fmt::format(
        "{} holds other data than this run's: give another folder, or save() the data first", file.string()));
}

DescentCallbacks Watchers::callbacks() {
  DescentCallbacks callbacks{.stop = stop_};
  if (record_)
    callbacks.on_record = [this](const Record& record) {
      record_.call([&] {
        nb::dict metrics;
        for (const Metric& metric : record.metrics) metrics[metric.name.c_str()] = metric.value;
        return nb::make_tuple(record.step, record.loss, record.max_softmax, record.norm,
                              to_dict(record.parameters), metrics);
      });
    };
  if (pulse_)
    callbacks.on_pulse = [this](const Descent& now) {
      pulse_.call([&] { return nb::make_tuple(now.step(), now.loss(), now.seconds()); });
    };
  return callbacks;
}

}  // namespace attmirror::python
