"""Sample ids: the parameter id_pattern, links between views, explained mismatches and similar ids."""

from __future__ import annotations

import random
import shlex
import warnings
from time import perf_counter

import pytest

from gapview.errors import GapviewWarning, InputError, ParameterError, ParameterTypeError
from gapview.views.ids import (
    check_links,
    explain_mismatch,
    read_options,
    read_pattern,
    report_similar,
    rewrite,
    rewrite_all,
)

RANDOM = random.Random(0)
PATIENTS = sorted({f"TCGA-{a}{RANDOM.randint(0, 9)}-{RANDOM.randint(1000, 9999)}" for a in "ABCDEF" for _ in range(20)})
NAMES = ("rna", "protein")


def rewritten(keys, pattern, name="rna"):
    return rewrite(name, keys, read_pattern(pattern, [name])[0])


class TestPattern:
    @pytest.mark.parametrize(
        ("pattern", "before", "after"),
        [
            ("^TCGA-..-....", "TCGA-A6-2672-01A", "TCGA-A6-2672"),
            (r"_(\d+)_", "run_12_x", "12"),
            (r"(?:a|b)(\d)", "b7", "7"),
            ("-01A$=>", "S1-01A", "S1"),
            ("-01A$=>", "S1-02A", "S1-02A"),
            (r"[.]=>-", "a.b.c", "a-b-c"),
            (r"(\d+)-(\d+)=>\2-\1", "1-2", "2-1"),
            (r"(?<=>)x=>y", ">x", ">y"),
            ("lower", "S1", "s1"),
            ("nfc", "Mu\u0308ller", "Müller"),
            ("nfkc", "Ｓ１", "S1"),
            ("lower", "Weiß", "weiss"),
            ("ascii", "Müller-Łódź", "Muller-Lodz"),
            ("ascii", "\u0420001", "P001"),  # a Cyrillic letter
            ("ascii", "東京", "東京"),
            ("spaces", "S\u200b 1\ufeff", "S1"),
            ("hyphens", "S–1‑2−3", "S-1-2-3"),
            ("zeros", "S001-02", "S1-2"),
            ("zeros", "000", "0"),
            ("zeros", "1.05", "1.05"),
            ("separators", "a.b_c/d e", "a-b-c-d-e"),
            (str.upper, "s1", "S1"),
            (lambda key: key[:3], "abcdef", "abc"),
            (["lower", "zeros", "^s=>"], "S007", "7"),
            (" S1=>  T1 ", "a S1", "a  T1"),  # without white space at the ends
        ],
    )
    def test_one_id(self, pattern, before, after):
        assert rewritten([before], pattern) == [after]

    def test_none(self):
        assert read_pattern(None, ["a", "b"]) == [None, None]
        assert rewrite("a", ["x", "y"], None) == ["x", "y"]

    def test_per_view(self):
        first, second = read_pattern({"b": "lower"}, ["a", "b"])
        assert first is None
        assert second(["X", "Y"]) == ["x", "y"]
        assert read_pattern({"a": None}, ["a", "b"]) == [None, None]
        with pytest.raises(ParameterError, match=r"id_pattern \(--id-pattern\) names views that do not exist: 'c'"):
            read_pattern({"c": "lower"}, ["a", "b"])

    @pytest.mark.parametrize(
        "pattern", ["(", "[a", "*", "a{2,1}", "(a=>b", r"a=>\1", r"(a)=>\2", r"a=>\g<x>", r"a=>\q"]
    )
    def test_bad_expressions(self, pattern):
        with pytest.raises(ParameterError, match="--id-pattern.*not a valid regular expression"):
            read_pattern(pattern, ["a"])

    def test_bad_values(self):
        with pytest.raises(ParameterError, match="1,001 characters; at most 1,000"):
            read_pattern("a" * 1001, ["a"])
        with pytest.raises(ParameterError, match="is empty"):
            read_pattern("", ["a"])
        with pytest.raises(ParameterError, match="empty list"):
            read_pattern([], ["a"])
        for value in (5, b"x", 1.5, object(), [3]):
            with pytest.raises(ParameterTypeError, match="id_pattern must be a regular expression"):
                read_pattern(value, ["a"])

    def test_ids_that_do_not_match(self):
        with pytest.raises(InputError, match=r"'\^S' does not match 2 ids of the 3 of view 'rna'.*'x1', 'x2'"):
            rewritten(["S1", "x1", "x2"], "^S")
        with pytest.raises(InputError, match="1 id of the 2.*leaves nothing of them: 'b'"):
            rewritten(["ab", "b"], "b=>")
        with pytest.raises(InputError, match="does not match 1 id"):
            rewritten(["a1", "b"], r"a(\d)|b")

    def test_ids_that_become_equal(self):
        with pytest.raises(InputError, match=r"in 1 case: 'S1-01', 'S1-02' become 'S1'.*keeps them apart"):
            rewritten(["S1-01", "S1-02", "S2-01"], "^[^-]+")
        assert rewritten(["S1", "S1"], "lower") == ["s1", "s1"]  # repeats are reported elsewhere

    def test_functions(self):
        with pytest.raises(InputError, match="id_pattern raised KeyError for the id 'b'"):
            rewritten(["a", "b"], {"a": "x"}.__getitem__)
        with pytest.raises(ParameterTypeError, match="must return text; for '1' it returned a int"):
            rewritten(["1"], int)
        with pytest.raises(InputError, match="does not match 1 id"):
            rewritten(["a", "b"], {"a": "x"}.get)

    def test_options_of_the_command_line(self):
        names = ["rna", "protein"]
        assert read_options([], names) is None
        assert read_options(["x=>y"], names) == ["x=>y"]
        assert read_options(["rna=>y"], names) == ["rna=>y"]
        assert read_options(["rna=lower", "rna=a=>b"], names) == {"rna": ["lower", "a=>b"]}
        assert read_options(["protein=(?=x)", "lower"], names) == {"protein": ["(?=x)", "lower"], "rna": ["lower"]}

    def test_all_views(self):
        keys = {"a": ["S1-01A", "S2-01A"], "b": ["S1", "S2"]}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rewrite_all(keys, "-01A$=>") == {"a": ["S1", "S2"], "b": ["S1", "S2"]}
            assert rewrite_all(keys, None) == keys
            assert rewrite_all(keys, {"a": "-01A$=>"})["a"] == ["S1", "S2"]
        with pytest.warns(GapviewWarning, match="changes no sample id of 'a', 'b'"):
            rewrite_all(keys, "-99$=>")
        with pytest.warns(GapviewWarning, match="changes no sample id of 'b'"):
            rewrite_all(keys, {"b": "-01A$=>"})


MISMATCHES = {
    "aliquots": ([f"{p}-01A-11R-{k:04d}-07" for k, p in enumerate(PATIENTS)], PATIENTS),
    "suffix": ([f"{p}-01A" for p in PATIENTS], PATIENTS),
    "dots": ([p.replace("-", ".") for p in PATIENTS], PATIENTS),
    "dots and suffix": ([p.replace("-", ".") for p in PATIENTS], [f"{p}-01A" for p in PATIENTS]),
    "dots and aliquots": ([f"{p}-01A-{k}R" for k, p in enumerate(PATIENTS)], [p.replace("-", ".") for p in PATIENTS]),
    "case, dots and suffix": ([f"{p.lower().replace('-', '.')}.01a" for p in PATIENTS], PATIENTS),
    "two aliquots": (
        [f"{p}-01A-11R-{k}" for k, p in enumerate(PATIENTS)],
        [f"{p}-01A-21D-{k + 7}" for k, p in enumerate(PATIENTS)],
    ),
    "normal tissue": (
        [f"{p}-01A-{k}R" for k, p in enumerate(PATIENTS)] + [f"{p}-11A-1R" for p in PATIENTS[:9]],
        PATIENTS,
    ),
    "letter of R": ([f"X{k}" for k in range(100, 200)], [str(k) for k in range(100, 200)]),
    "letter of R and dots": ([f"X{k}.a" for k in range(100, 200)], [f"{k}-a" for k in range(100, 200)]),
    "zeros": ([f"{k:03d}" for k in range(250)], [str(k) for k in range(250)]),
    "zeros inside": ([f"S{k:03d}" for k in range(250)], [f"S{k}" for k in range(250)]),
    "case": ([f"s{k}" for k in range(50)], [f"S{k}" for k in range(50)]),
    "case and zeros": ([f"s{k:03d}" for k in range(1, 250)], [f"S{k}" for k in range(1, 250)]),
    "repeat number": ([f"P{k}.1" for k in range(50)], [f"P{k}" for k in range(50)]),
    "file": ([f"P{k}.sorted.bam" for k in range(50)], [f"P{k}" for k in range(50)]),
    "two endings": ([f"P{k}_rna" for k in range(50)], [f"P{k}_protein" for k in range(50)]),
    "two beginnings": ([f"rna{k}" for k in range(50)], [f"prot{k}" for k in range(50)]),
    "word": ([f"patient_{k}" for k in range(50)], [str(k) for k in range(50)]),
    "word and zeros": ([f"patient_{k:03d}" for k in range(50)], [str(k) for k in range(50)]),
    "folder": ([f"data/run{k % 3}/P{k}" for k in range(50)], [f"P{k}" for k in range(50)]),
    "no hyphen": ([f"P-{k}" for k in range(50)], [f"P{k}" for k in range(50)]),
    "spaces": ([f"P {k}" for k in range(50)], [f"P{k}" for k in range(50)]),
    "zero width": ([f"P{k}\u200b" for k in range(50)], [f"P{k}" for k in range(50)]),
    "dashes": ([f"P–{k}" for k in range(50)], [f"P-{k}" for k in range(50)]),
    "Unicode": ([f"Mu\u0308ller {k}" for k in range(50)], [f"Müller {k}" for k in range(50)]),
    "decimals": ([f"{k}.0" for k in range(50)], [str(k) for k in range(49)] + ["x"]),
    "two ids": (["A-01A", "B-01A"], ["A", "B"]),
}


class TestExplanation:
    @pytest.mark.parametrize("name", MISMATCHES)
    @pytest.mark.parametrize("swapped", [False, True])
    def test_the_proposal_matches_the_ids(self, name, swapped):
        left, right = MISMATCHES[name][:: -1 if swapped else 1]
        before = len(set(left) & set(right))
        proposal = explain_mismatch(left, right, NAMES)
        assert proposal is not None
        assert "id_pattern=" in proposal.text
        new = rewrite_all(dict(zip(NAMES, (left, right), strict=True)), proposal.pattern)
        gained = len(set(new["rna"]) & set(new["protein"])) - before
        assert gained == proposal.n_pairs >= 0.95 * (min(len(left), len(right)) - before)
        for one, other in proposal.examples:
            assert one != other
            assert new["rna"][left.index(one)] == new["protein"][right.index(other)]

    @pytest.mark.parametrize("name", MISMATCHES)
    def test_the_options_do_the_same(self, name):
        left, right = MISMATCHES[name]
        proposal = explain_mismatch(left, right, NAMES)
        words = shlex.split(proposal.text.split("(on the command line: ")[1].removesuffix(")."))
        assert words[::2] == ["--id-pattern"] * (len(words) // 2)
        keys = dict(zip(NAMES, (left, right), strict=True))
        assert rewrite_all(keys, read_options(words[1::2], NAMES)) == rewrite_all(keys, proposal.pattern)

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("suffix", "the ending '-01A'"),
            ("dots", "'.' in place of '-'"),
            ("dots and suffix", "'.' in place of '-' and the ending '-01A'"),
            ("aliquots", "the part after the third '-'"),
            ("letter of R", "the beginning 'X'"),
            ("zeros", "leading zeros"),
            ("case", "case"),
            ("case and zeros", "case and leading zeros"),
            ("two endings", "the endings '_rna' and '_protein'"),
            ("dashes", "look-alike hyphens"),
            ("Unicode", "the Unicode form"),
        ],
    )
    def test_what_differs(self, name, what):
        assert explain_mismatch(*MISMATCHES[name]).what == what

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            ([], []),
            (["a"], []),
            (["a", "b"], ["a", "b"]),
            (list("abc"), list("def")),
            ([f"TCGA-AA-{k}" for k in range(100, 150)], [f"TCGA-BB-{k}" for k in range(200, 250)]),
            ([f"p1_0_{k}" for k in range(300)], [f"p2_0_{k}" for k in range(300)]),
            ([str(k) for k in range(100)], [str(k) for k in range(1000, 1100)]),
            ([f"{k}" for k in RANDOM.sample(range(10**6), 900)], [f"{k}" for k in RANDOM.sample(range(10**7), 900)]),
            (["cat", "dog", "cow", "pig"], ["catalogue", "fish", "bird", "ant", "bee", "fly"]),
        ],
    )
    def test_no_proposal(self, left, right):
        assert explain_mismatch(left, right) is None

    def test_barcodes_cut_to_one_word(self):
        left = [f"TCGA-{k:04d}-A" for k in range(30)]
        assert explain_mismatch(left, ["TCGA", "other", "third"]) is None

    def test_many_ids(self):
        left = [f"S{k:06d}-01A" for k in range(20_000)]
        began = perf_counter()
        proposal = explain_mismatch(left, [key.lower()[:-4] for key in left[::-1]], NAMES)
        assert proposal.n_pairs == 20_000
        assert perf_counter() - began < 20


class TestLinks:
    @pytest.fixture(autouse=True)
    def no_warnings(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def test_linked(self):
        check_links({})
        check_links({"a": ["x"]})
        check_links({"a": ["x"], "b": []})
        check_links({"a": list("abc"), "b": list("cde")})
        check_links({"a": list("abc"), "b": list("def"), "c": list("abd")})
        check_links({"a": [f"x{k}" for k in range(100)], "b": [f"x{k}" for k in range(90, 190)]}, None)

    def test_nothing_in_common(self):
        with pytest.raises(InputError) as error:
            check_links({"rna": [f"{p}-01A" for p in PATIENTS], "protein": [p.replace("-", ".") for p in PATIENTS]})
        text = str(error.value)
        assert text.startswith("The views 'rna' and 'protein' have no sample in common: 'rna' has 'TCGA-A")
        assert "-01A', …; 'protein' has 'TCGA.A" in text
        assert "--id-pattern separators --id-pattern 'rna=-01A$=>'" in text

    def test_nothing_in_common_and_no_proposal(self):
        with pytest.raises(InputError, match="'a' has 'x', 'y', …; 'b' has 'p', 'q', ….*--id-pattern.*--id"):
            check_links({"a": ["x", "y"], "b": ["p", "q"]})

    def test_parts_of_one_view(self):
        columns = {"a": ["g", "h"], "b": ["h", "g"]}
        with pytest.raises(InputError, match="the same columns: if they are parts of one view, concatenate"):
            check_links({"a": ["x", "y"], "b": ["p", "q"]}, columns)

    def test_too_few_in_common(self):
        keys = {"a": [f"x{k}" for k in range(100)], "b": [f"x{k}" for k in range(98, 198)]}
        with pytest.raises(InputError, match="only 2 samples in common; at least 3 are needed"):
            check_links(keys)
        keys["c"] = keys["a"]
        with pytest.raises(InputError, match="no other view links 'a', 'c' with 'b'"):
            check_links(keys)
        keys["d"] = keys["a"][50:] + keys["b"][50:]
        check_links(keys)

    def test_a_small_share(self):
        keys = {"a": [f"x{k}" for k in range(100)], "b": [f"x{k}" for k in range(97, 297)]}
        with pytest.warns(GapviewWarning, match="'a' and 'b' have only 3 samples in common, 3.0 % of the 100 of 'a'"):
            check_links(keys)

    def test_a_chain(self):
        check_links({f"v{j}": [f"x{k}" for k in range(50 * j, 50 * j + 100)] for j in range(6)})


class TestSimilar:
    @pytest.mark.parametrize(
        ("one", "other", "kind"),
        [
            ("S1", "s1", "case"),
            ("STRASSE", "straße", "case"),
            ("S 1", "S1", "white space or invisible characters"),
            ("S1\u200b", "S1", "white space or invisible characters"),
            ("Müller", "Mu\u0308ller", "the Unicode form"),
            ("Ｓ１", "S1", "the Unicode form"),
            ("S-1", "S–1", "look-alike hyphens"),
            ("S-1", "S\u20111", "look-alike hyphens"),
            ("'S1'", "S1", "quotation marks"),
            ("10", "010", "leading zeros"),
            ("S1", "S001", "leading zeros"),
            ("5", "5.0", "the format of numbers"),
            ("100000", "1e+05", "the format of numbers"),
            ("1000", "1,000", "the format of numbers"),
            ("1.5", "1.50", "the format of numbers"),
            ("S01", "s1", "case and leading zeros"),
            ("weiß", "weiss", "case"),
            ("1000", "1'000", "quotation marks"),
            ("1000", "1 000", "white space or invisible characters"),
            ("Müller", "MÃ¼ller", "the text encoding"),
            ("Ángel", "Ã\ufffdngel", "the text encoding"),
            ("S–1", "Sâ€“1", "the text encoding"),
            ("S-1", "Sâ€“1", "the text encoding"),
            ("Müller", "MŸller", "the text encoding"),
            ("Müller", "M\x9fller", "the text encoding"),
            ("Müller", "M³ller", "the text encoding"),
            ("Müller", "M?ller", "the text encoding"),
            ("Müller", "m\ufffdller", "the text encoding"),
            ("P001", "\u0420001", "look-alike letters"),  # a Cyrillic letter
            ("AB1", "\u0391\u03921", "look-alike letters"),  # Greek letters
        ],
    )
    @pytest.mark.parametrize("within", [True, False])
    def test_pairs(self, one, other, kind, within):
        keys = {"a": [one, other, "zz"], "b": ["zz"]} if within else {"a": [one, "zz"], "b": [other, "zz"]}
        [sentence] = report_similar(keys)
        assert sentence.startswith(f"1 pair of sample ids differs only by {kind}, ")
        assert "id_pattern" in sentence
        assert "--id-pattern" in sentence
        assert ("(both in 'a')" if within else "(in 'b')") in sentence

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("1", "01A"),
            ("S1", "S2"),
            ("1.05", "1.5"),
            ("S10", "S1"),
            ("1e5", "15"),
            ("1,5", "15"),
            ("0", "00A"),
        ],
    )
    def test_other_ids(self, one, other):
        assert report_similar({"a": [one, other]}) == []
        assert report_similar({"a": [one], "b": [other]}) == []

    @pytest.mark.parametrize(
        ("one", "other", "kind"),
        [
            ("Müller", "Muller", "accents"),
            ("MÜLLER", "muller", "accents"),
            ("Müller", "Mueller", "accents"),
            ("Łódź", "Łodz", "accents"),
            ("Søren", "Soren", "accents"),
            ("2020-01-05", "05.01.2020", "the format of dates"),
            ("2020-01-05", "5.1.2020", "the format of dates"),
            ("2020-01-05", "01/05/2020", "the format of dates"),
            ("2020-01-05", "5/1/20", "the format of dates"),
            ("2020-01-05", "20200105", "the format of dates"),
            ("2020-01-05", "05-Jan-2020", "the format of dates"),
            ("2020-01-05", "2020-01-05T00:00:00", "the format of dates"),
            ("05.01.2020", "01/05/2020", "the format of dates"),
            ("13/01/2020", "01/13/2020", "the format of dates"),
            ("1000", "1.000", "thousands separators"),
            ("1234567", "1.234.567", "thousands separators"),
        ],
    )
    def test_pairs_of_different_views(self, one, other, kind):
        [sentence] = report_similar({"a": [one, "zz"], "b": [other, "zz"]})
        assert sentence.startswith(f"1 pair of sample ids differs only by {kind}, ")
        assert report_similar({"a": [one, other, "zz"], "b": ["zz"]}) == []
        assert report_similar({"a": [one, "zz"], "b": [other, "zz"], "c": [one, other]}) == []

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Müller", "Möller"),
            ("José", "Josef"),
            ("01/05/2020", "05/01/2020"),  # the same way to write dates
            ("2020-01-05", "2020-05-01"),
            ("2020-01-05", "05.02.2020"),
            ("2020-01-05", "13.13.2020"),
            ("1.00", "100"),
            ("0.001", "1"),
            ("1.2345", "12345"),
            ("東京1", "大阪1"),
        ],
    )
    def test_other_ids_of_different_views(self, one, other):
        assert report_similar({"a": [one, "zz"], "b": [other, "zz"]}) == []

    def test_the_advice_on_accents_works(self):
        keys = {"a": [f"Müller-{k}" for k in range(9)] + ["zz"], "b": [f"Muller-{k}" for k in range(9)] + ["zz"]}
        [sentence] = report_similar(keys)
        assert "id_pattern='ascii' (on the command line: --id-pattern ascii)" in sentence
        new = rewrite_all(keys, "ascii")
        assert new["a"] == new["b"]

    @pytest.mark.parametrize("other", ["MÃ¼ller", "Mueller"])
    def test_no_advice_that_does_not_work(self, other):
        [sentence] = report_similar({"a": ["Müller", "zz"], "b": [other, "zz"]})
        assert "correct the ids" in sentence

    def test_nothing_in_common_but_for_accents(self):
        with pytest.raises(InputError, match="but for accents.*id_pattern='ascii'"):
            check_links({"a": [f"Müller-{k}" for k in range(9)], "b": [f"Muller-{k}" for k in range(9)]})

    def test_many_ids_with_accents_and_dates(self):
        names = [f"Müller-{k}" for k in range(2000)]
        dates = [f"{1950 + k // 336}-{1 + k // 28 % 12:02d}-{1 + k % 28:02d}" for k in range(2000)]
        began = perf_counter()
        assert report_similar({"a": names[:1500] + dates[:1500], "b": names[500:] + dates[500:]}) == []
        assert perf_counter() - began < 10

    def test_one_sentence_on_each_pair(self):
        keys = {"a": [f"A-{k}" for k in range(9)] + ["zz"], "b": [f"a-{k}" for k in range(9)] + ["zz"]}
        assert len(report_similar(keys)) == 1

    def test_the_advice_works(self):
        keys = {"a": [f"S{k:03d}" for k in range(40)], "b": [f"s{k}" for k in range(40)]}
        [sentence] = report_similar(keys)
        assert sentence.startswith("40 pairs")
        assert "id_pattern=['lower', 'zeros'] (on the command line: --id-pattern lower --id-pattern zeros)" in sentence
        new = rewrite_all(keys, ["lower", "zeros"])
        assert new["a"] == new["b"]
        assert report_similar(new) == []

    def test_no_advice_that_merges_ids(self):
        [sentence] = report_similar({"a": ["S1", "s1"]})
        assert "id_pattern='lower'" not in sentence
        assert "correct the ids" in sentence

    @pytest.mark.parametrize(
        ("of", "what"),
        [
            (lambda k: f"S{k}-01A", "the ending '-01A'"),
            (lambda k: f"S{k}_rna", "the ending '_rna'"),
            (lambda k: f"run.S{k}", "the beginning 'run.'"),
        ],
    )
    def test_some_ids_have_an_ending(self, of, what):
        keys = {"a": [f"S{k}" for k in range(60)] + [of(k) for k in range(60, 80)], "b": [f"S{k}" for k in range(100)]}
        [sentence] = report_similar(keys)
        assert f"20 ids of both match but for {what}" in sentence
        assert "'a' and 'b'" in sentence

    def test_some_ids_have_other_separators(self):
        keys = {
            "a": [f"S-{k}" for k in range(80)],
            "b": [f"S-{k}" for k in range(60)] + [f"S.{k}" for k in range(60, 80)],
        }
        [sentence] = report_similar(keys)
        assert "20 pairs of sample ids differ only by separators" in sentence
        assert "id_pattern='separators'" in sentence

    def test_a_single_id_has_other_separators(self):
        keys = [f"TCGA.A{k % 9}.{3300 + k}" for k in range(50)]
        [sentence] = report_similar({"a": keys, "b": [keys[0].replace(".", "\u2013"), *keys[1:40]]})
        assert "1 pair of sample ids differs only by separators" in sentence
        assert "id_pattern=['hyphens', 'separators']" in sentence

    def test_some_ids_lack_an_ending(self):
        keys = {"a": [f"d{k}.txt" for k in range(80)], "b": [f"d{k}.txt" if k % 3 else f"d{k}" for k in range(80)]}
        [sentence] = report_similar(keys)
        assert "27 ids of both match but for the ending '.txt'" in sentence
        new = rewrite_all(keys, r"\.txt$=>")
        assert new["a"] == new["b"]

    def test_a_few_ids_among_many_that_do_not_match(self):
        keys = {
            "a": [f"S{k}" for k in range(300)],
            "b": [f"S{k}" for k in range(200, 296)]
            + [f"S{k}-01A" for k in range(296, 300)]
            + [f"T{k}" for k in range(99)],
        }
        [sentence] = report_similar(keys)
        assert "4 ids of both match but for the ending '-01A'" in sentence

    def test_both_kinds(self):
        keys = {"a": [f"S{k}-01A" for k in range(20)] + ["t1", "u"], "b": [f"S{k}" for k in range(20)] + ["T1", "u"]}
        assert len(report_similar(keys)) == 2

    @pytest.mark.parametrize(
        "keys",
        [
            {},
            {"a": []},
            {"a": ["x"], "b": []},
            {"a": [f"p1_0_{k}" for k in range(200)] + ["x1"], "b": [f"p2_0_{k}" for k in range(200)] + ["x1"]},
            {"a": PATIENTS[:80], "b": PATIENTS[40:]},
            {"a": [str(k) for k in range(60)], "b": [str(k) for k in range(30, 500, 7)]},
            {
                "a": [f"{p}-01A" for p in PATIENTS] + [f"{p}-11A" for p in PATIENTS[:20]],
                "b": [f"{p}-01A" for p in PATIENTS],
            },
            {"a": [f"FAM{k}-1" for k in range(50)], "b": [f"FAM{k}-{1 + k % 2}" for k in range(50)]},
            {"a": ["cat", "dog", "cow", "x", "y"], "b": ["cats", "dogs", "cows", "x", "y"]},
        ],
    )
    def test_no_report(self, keys):
        assert report_similar(keys) == []

    def test_many_ids(self):
        many = [f"S{k:07d}-01A" for k in range(40_000)]
        began = perf_counter()
        assert report_similar({"a": many[:30_000], "b": many[::-1], "c": many[10_000:]}) == []
        assert perf_counter() - began < 20

    def test_odd_characters(self):
        assert report_similar({"a": ["a\x00b", "c\nd", "", "\ud800"], "b": ["x"]}) == []
