import unittest

from greeting import greeting


class GreetingTest(unittest.TestCase):
    def test_names_are_greeted(self):
        self.assertEqual(list(greeting("Ada", "POST", "/hello")), ["Hello, Ada!\n", "You sent POST to /hello.\n"])


if __name__ == "__main__":
    unittest.main()
