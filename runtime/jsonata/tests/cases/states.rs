//! What AWS Step Functions adds and leaves out.

use crate::Rows;

pub(crate) const ROWS: Rows = &[
    ("$partition([1..5], 2)", "[[1,2],[3,4],[5]]"),
    ("$partition([], 2)", "[]"),
    ("$partition([1], 0)", "!D3150"),
    ("$partition(missing, 2)", "undefined"),
    ("$range(1, 9, 2)", "[1,3,5,7,9]"),
    ("$range(1, 8, 2)", "[1,3,5,7]"),
    ("$range(3, 1, -1)", "[3,2,1]"),
    ("$range(1, 3, 0)", "!D3151"),
    ("$range(1, 0, 1)", "[]"),
    ("$hash(\"input\", \"SHA-1\")", "\"140f86aae51ab9e1cda9b4254fe98a74eb54c1a1\""),
    ("$hash(\"\", \"MD5\")", "\"d41d8cd98f00b204e9800998ecf8427e\""),
    ("$hash(\"abc\", \"SHA-256\")", "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""),
    ("$length($hash(\"abc\", \"SHA-384\"))", "96"),
    ("$length($hash(\"abc\", \"SHA-512\"))", "128"),
    ("$hash(\"abc\", \"SHA-3\")", "!D3152"),
    ("$random(5) = $random(5)", "true"),
    ("$random(5) = $random(6)", "false"),
    ("$random() = $random()", "false"),
    ("$contains($uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)", "true"),
    ("$uuid() = $uuid()", "false"),
    ("$parse('{\"a\": [1, null, \"x\"]}').a", "[1,null,\"x\"]"),
    ("$parse('1 2')", "!D3153"),
    ("$parse('{')", "!D3153"),
    ("$parse(missing)", "undefined"),
    ("$eval(\"1\")", "!T1006"),
    ("$now()", "\"2024-02-29T12:34:56.789Z\""),
];
