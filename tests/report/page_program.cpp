// page_program FOLDER: writes the example page with Plotly (interactive.html, if it is built in) and without
// (static.html), for the tests in a browser.
#include "base/atomic_file.hpp"
#include "report/embedded.hpp"
#include "report/example_page.hpp"
#include "report/page_html.hpp"
#include <attmirror/report/svg.hpp>

#include <cstdio>
#include <filesystem>

int main(int argc, char** argv) try {
  using namespace attmirror;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  const Page page = test::example_page();
  write_page(page, folder / "static.html");
  write_file_atomically(folder / "static.html", page_html(page, ""));
  if (has_plotly()) write_file_atomically(folder / "interactive.html", page_html(page, plotly_source()));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
