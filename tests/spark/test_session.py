import subprocess
import sys

import pytest

pyspark = pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings import spark as ts  # noqa: E402
from tidings.errors import SparkUnavailable  # noqa: E402
from tidings.spark.session import java_version, kafka_settings, require_java  # noqa: E402


def fake_java(folder, said):
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    binary.chmod(0o755)
    return binary


def test_a_missing_java_is_told_in_one_line_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"Java 17 or later.*no `java` on the PATH.*apt-get install") as caught:
        require_java()
    assert "\n" not in str(caught.value)


def test_a_java_home_without_java_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=f"JAVA_HOME is `{tmp_path}`"):
        require_java()


@pytest.mark.parametrize(("said", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)])
def test_an_old_java_is_refused_by_its_version(monkeypatch, tmp_path, said, version):
    fake_java(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=f"is Java {version}: install it"):
        require_java()


def test_a_java_that_does_not_say_its_version_is_given_a_chance(tmp_path):
    assert java_version(str(fake_java(tmp_path, "hello"))) is None


def test_the_kafka_connector_comes_by_the_coordinates_of_the_running_version(monkeypatch):
    monkeypatch.delenv("TIDINGS_JARS", raising=False)
    wanted = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert kafka_settings() == {"spark.jars.packages": wanted}


def test_the_kafka_connector_comes_from_the_folder_of_jars_where_one_is_given(monkeypatch, tmp_path):
    for name in ("b.jar", "a.jar", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("TIDINGS_JARS", str(tmp_path))
    assert kafka_settings() == {"spark.jars": f"{tmp_path}/a.jar,{tmp_path}/b.jar"}


def test_a_folder_without_jars_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDINGS_JARS", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="holds no jars"):
        kafka_settings()


def test_the_session_is_quiet_in_utc_and_runs_this_python(spark):
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
    workers = spark.range(2).mapInArrow(name_the_python, "python string").distinct().collect()
    assert [row.python for row in workers] == [sys.executable]


def name_the_python(batches):
    import pyarrow as pa

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})


def test_asking_again_gives_the_running_session(spark):
    assert ts.session("another name").sparkContext is spark.sparkContext


def test_a_running_session_cannot_be_given_the_kafka_connector(spark):
    with pytest.raises(SparkUnavailable, match="jars are read at the start"):
        ts.session(kafka=True)


def test_without_pyspark_the_error_names_the_extra():
    program = "import sys; sys.modules['pyspark'] = None\nimport tidings.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingExtra: tidings.spark needs PySpark; install it with `pip install 'tidings[spark]'`" in done.stderr


def test_all_names_of_the_package_are_there():
    assert all(callable(getattr(ts, name)) for name in ts.__all__)
