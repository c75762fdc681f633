"""site_test.py SOURCE: what the site of the documentation is made from, without making it: that takes Sphinx and minutes.

A room or a Python module without a title, or a link to a file that is not there, stops scripts/docs.sh.
"""
import ast
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "docs/site"))
import references  # noqa: E402
import stage  # noqa: E402


class Site(unittest.TestCase):
    def test_rooms_have_titles(self):
        rooms = {path.name for path in (SOURCE / "include/attmirror").iterdir() if path.is_dir() and list(path.glob("*.hpp"))}
        self.assertEqual(rooms - set(references.ROOMS), set())

    def test_python_modules_have_titles(self):
        tree = ast.parse((SOURCE / "python/attmirror/__init__.py").read_text(encoding="utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module}
        self.assertIn("_data", modules)
        self.assertEqual(modules - set(references.GROUPS), set())

    def test_links_of_all_pages_lead_somewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            site = stage.Stage(SOURCE, pathlib.Path(folder))
            for page in stage.pages_of(SOURCE):
                site.rewrite(page, (SOURCE / page).read_text(encoding="utf-8"))
            self.assertIn("docs/results/p3_global_grid.csv", site.files)
            for path in site.files:
                self.assertTrue((SOURCE / path).is_file(), path)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
