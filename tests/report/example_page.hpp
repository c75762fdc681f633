// A page with every kind of block and figure, for the tests of the page in C++ and in a browser.
#pragma once

#include <attmirror/report/page.hpp>

#include <string>

namespace attmirror::test {

Page example_page();

// Text that would break a page which does not escape it.
inline const std::string hostile = "</script><script>alert(1)</script><b>&amp; \"quotes\" 'and' %{x} \xff `";

}  // namespace attmirror::test
