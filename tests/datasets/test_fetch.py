"""Downloads through OpenML, from a stand-in server on this machine."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import _openml

from gapview.datasets import fetch_handwritten
from gapview.errors import DownloadError, GapviewError, InputError, InputTypeError, ParameterTypeError

OPENML = {name: getattr(_openml, name) for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES")}


def arff(name, matrix, target):
    lines = [f"@RELATION {name}"]
    lines += [f"@ATTRIBUTE f{j} NUMERIC" for j in range(matrix.shape[1])]
    lines += ["@ATTRIBUTE class {1,2,3}", "@DATA"]
    lines += [",".join(map(str, row)) + f",{label}" for row, label in zip(matrix, target, strict=True)]
    return "\n".join(lines).encode()


def openml_pages(base, tables):
    """What OpenML answers for each data set: description, features, qualities, file."""
    pages = {}
    for number, (name, matrix, target) in tables.items():
        file = arff(name, matrix, target)
        features = [{"index": str(j), "name": f"f{j}", "data_type": "numeric"} for j in range(matrix.shape[1])]
        features.append({"index": str(matrix.shape[1]), "name": "class", "data_type": "nominal", "is_target": "true"})
        for feature in features:
            feature |= {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
            feature.setdefault("is_target", "false")
        description = {
            "id": str(number),
            "name": name,
            "version": "1",
            "format": "ARFF",
            "status": "active",
            "file_id": str(number),
            "url": f"{base}/data/v1/download/{number}/{name}.arff",
            "md5_checksum": hashlib.md5(file).hexdigest(),
            "default_target_attribute": "class",
            "description": name,
        }
        qualities = [{"name": "NumberOfInstances", "value": str(len(matrix))}]
        pages[f"/api/v1/json/data/{number}"] = json.dumps({"data_set_description": description}).encode()
        pages[f"/api/v1/json/data/features/{number}"] = json.dumps({"data_features": {"feature": features}}).encode()
        pages[f"/api/v1/json/data/qualities/{number}"] = json.dumps({"data_qualities": {"quality": qualities}}).encode()
        pages[f"/data/v1/download/{number}/{name}.arff"] = file
    return pages


@contextmanager
def stand_in_for_openml(monkeypatch, tables, answer=None):
    """Serve the data sets on this machine and point scikit-learn's addresses there.

    ``answer`` may spoil what is sent: it gets the path and the body, and returns the headers and the body to send.
    """
    pages: dict[str, bytes] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = pages.get(self.path)
            self.send_response(200 if body is not None else 412)
            headers, body = (answer or (lambda path, body: ({}, body)))(self.path, body or b"{}")
            for header in headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_port}"
    pages.update(openml_pages(base, tables))
    for constant in ("_OPENML_PREFIX", "_SEARCH_NAME", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES", "_DATA_FILE"):
        address = getattr(_openml, constant, None)
        if isinstance(address, str) and address.startswith("https://"):
            monkeypatch.setattr(_openml, constant, base + "/" + address.split("/", 3)[3])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def openml_tables(shuffle=False):
    rng = np.random.RandomState(0)
    target = np.repeat([1, 2, 3], 10)
    other = rng.permutation(target) if shuffle else target
    return {
        40979: ("mfeat-pixel", rng.randint(7, size=(30, 240)), target),
        14: ("mfeat-fourier", rng.uniform(size=(30, 76)).round(4), other),
    }


class TestFetch:
    def test_downloads_once_and_keeps(self, monkeypatch, tmp_path):
        tables = openml_tables()
        with stand_in_for_openml(monkeypatch, tables) as asked:
            data = fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
            n_asked = len(asked)
            again = fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
            assert len(asked) == n_asked > 0  # the second time nothing was asked for
        assert data.views.names == ("pixels", "fourier")
        np.testing.assert_array_equal(data.views.matrices[0], tables[40979][1])
        np.testing.assert_allclose(again.views.matrices[1], tables[14][1])
        assert data.target.tolist() == [0] * 10 + [1] * 10 + [2] * 10

    def test_orders_that_disagree(self, monkeypatch, tmp_path):
        with (
            stand_in_for_openml(monkeypatch, openml_tables(shuffle=True)),
            pytest.raises(DownloadError, match="different orders"),
        ):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda body: ({}, body + b"%"), id="other contents"),
            pytest.param(lambda body: ({"Content-Encoding": "gzip"}, gzip.compress(body)[:-40]), id="truncated gzip"),
            pytest.param(
                lambda body: ({"Content-Encoding": "gzip"}, gzip.compress(body)[:10] + b"\xff" * 90), id="bad gzip"
            ),
            pytest.param(lambda body: ({"Content-Length": str(len(body))}, body[:-40]), id="cut connection"),
            pytest.param(lambda body: ({}, b""), id="nothing"),
        ],
    )
    @pytest.mark.parametrize("end", ["arff", "/data/40979"])
    def test_damaged_files(self, monkeypatch, tmp_path, spoil, end):
        """Whatever breaks, there is one kind of error and no warning of scikit-learn's new tries."""

        def answer(path, body):
            return spoil(body) if path.endswith(end) else ({}, body)

        with stand_in_for_openml(monkeypatch, openml_tables(), answer), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(DownloadError, match="The pixels view .* could not be downloaded"):
                fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        assert not [warning for warning in warned if not issubclass(warning.category, ResourceWarning)]

    def test_a_changed_file_is_told(self, monkeypatch, tmp_path):
        def answer(path, body):
            return {}, body + (b"%" if path.endswith("arff") else b"")

        with stand_in_for_openml(monkeypatch, openml_tables(), answer), pytest.raises(DownloadError, match="md5"):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    @pytest.mark.parametrize("body", [b'{"error": {"message": "busy"}}', b"[]", b"null", b"<html>busy</html>"])
    @pytest.mark.parametrize("page", ["/data/40979", "/features/40979"])
    def test_an_error_instead_of_an_answer_is_not_kept(self, monkeypatch, tmp_path, body, page):
        def busy(path, right):
            return {}, body if path.endswith(page) else right

        with (
            stand_in_for_openml(monkeypatch, openml_tables(), busy),
            pytest.raises(DownloadError, match="The pixels view .* could not be downloaded"),
        ):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        for constant, address in OPENML.items():
            monkeypatch.setattr(_openml, constant, address)
        with stand_in_for_openml(monkeypatch, openml_tables()):
            assert fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01).views.n_samples == 30

    def test_data_that_are_not_there(self, monkeypatch, tmp_path):
        tables = openml_tables()
        with stand_in_for_openml(monkeypatch, {14: tables[14]}), pytest.raises(DownloadError, match="pixels view"):
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)

    def test_without_network(self, monkeypatch, tmp_path):
        for constant in ("_OPENML_PREFIX", "_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
            if str(getattr(_openml, constant, "")).startswith("https://"):
                monkeypatch.setattr(_openml, constant, "http://127.0.0.1:1/{}")  # nothing listens there
        with pytest.raises(
            DownloadError, match="could not be downloaded.*Check the network.*load_digits_views"
        ) as caught:
            fetch_handwritten(data_home=tmp_path, n_retries=1, delay=0.01)
        assert isinstance(caught.value, OSError)
        assert isinstance(caught.value, GapviewError)

    def test_unknown_view(self):
        with pytest.raises(InputError, match="views must name some of"):
            fetch_handwritten(["pictures"])

    @pytest.mark.parametrize("views", ["pixels", None, 3])
    def test_views_that_are_no_list(self, views):
        with pytest.raises(InputTypeError, match=f"views must be a list of views.*; got {views!r}"):
            fetch_handwritten(views)

    def test_a_view_twice(self):
        with pytest.raises(InputError, match="'pixels' occur more than once"):
            fetch_handwritten(["pixels", "fourier", "pixels"])

    def test_a_folder_that_is_none(self):
        with pytest.raises(ParameterTypeError, match="data_home must be None or the path of a folder; got 3"):
            fetch_handwritten(data_home=3)
