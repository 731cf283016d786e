# SPDX-License-Identifier: Apache-2.0
"""The check of Python signatures: which parameters count."""
import unittest

import static


class Signatures(unittest.TestCase):
    def check(self, text):
        return [sentence.split(" takes ")[0] for sentence in static.long_signatures("x.py", text)]

    def test_seven_by_position_are_allowed_and_those_behind_the_star_do_not_count(self):
        self.assertEqual([], self.check("def f(a, b, c, d, e, f, g=1, *rest, h=2, **more): pass"))

    def test_eight_are_refused_wherever_the_function_is_defined(self):
        eight = "(self, b, c, d, e, f, /, g, h)"
        self.assertEqual(["x.py:2: method", "x.py:4: inner", "x.py:5: lambda"], sorted(self.check(
            f"class C:\n  def method{eight}: pass\ndef outer():\n  async def inner{eight}: pass\n"
            "x = lambda a, b, c, d, e, f, g, h: a")))


if __name__ == "__main__":
    unittest.main()
