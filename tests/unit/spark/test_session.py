import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

pyspark = pytest.importorskip("pyspark", reason="needs tidings[spark]")

from tidings import spark as ts  # noqa: E402
from tidings.errors import SparkUnavailable  # noqa: E402
from tidings.installation import CONNECTOR, JARS, read_java_version  # noqa: E402
from tidings.spark.connector import KAFKA, build_kafka_settings, explain_failed_start  # noqa: E402
from tidings.spark.session import require_java  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


def fake_java(folder, version_text):
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho '{version_text}' >&2\n")
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


@pytest.mark.parametrize(
    ("version_text", "version"), [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2"', 11)]
)
def test_an_old_java_is_refused_by_its_version(monkeypatch, tmp_path, version_text, version):
    fake_java(tmp_path, version_text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=f"is Java {version}: install it"):
        require_java()


def test_a_java_that_does_not_say_its_version_is_given_a_chance(tmp_path):
    assert read_java_version(str(fake_java(tmp_path, "hello")))[0] is None


@pytest.fixture
def connector(monkeypatch, tmp_path):
    """A folder with the connector's four jars, by their names, and no word of it in the environment."""
    monkeypatch.delenv("TIDINGS_JARS", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for name in (*JARS, "notes"):
        (tmp_path / f"{name}-1.0.{'txt' if name == 'notes' else 'jar'}").touch()
    return tmp_path


def join_names(folder):
    return ",".join(sorted(f"{folder}/{name}-1.0.jar" for name in JARS))


def test_the_kafka_connector_comes_by_the_coordinates_of_the_running_version(connector):
    wanted = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert build_kafka_settings() == {"spark.jars.packages": wanted}
    assert build_kafka_settings(config={"spark.jars.packages": "a:b:1"}) == {"spark.jars.packages": f"a:b:1,{wanted}"}


def test_the_kafka_connector_comes_from_the_folder_of_jars_where_one_is_given(monkeypatch, connector):
    assert build_kafka_settings(str(connector)) == {"spark.jars": join_names(connector)}
    assert build_kafka_settings(str(connector), {"spark.jars": "x.jar"}) == {
        "spark.jars": f"x.jar,{join_names(connector)}"
    }
    monkeypatch.setenv("TIDINGS_JARS", str(connector))
    assert build_kafka_settings() == {"spark.jars": join_names(connector)}
    monkeypatch.setenv("TIDINGS_JARS", "/nowhere")
    assert build_kafka_settings(str(connector)) == {"spark.jars": join_names(connector)}


def test_a_connector_that_is_there_already_is_not_fetched(monkeypatch, connector):
    assert build_kafka_settings(config={"spark.jars": join_names(connector)}) == {}
    (connector / "spark").mkdir()
    (connector / "spark" / "jars").symlink_to(connector)
    monkeypatch.setenv("SPARK_HOME", str(connector / "spark"))
    assert build_kafka_settings() == {}


def test_a_folder_without_jars_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDINGS_JARS", str(tmp_path))
    with pytest.raises(SparkUnavailable, match=r"TIDINGS_JARS names `.*`, which holds no jars; put its four jars"):
        build_kafka_settings()


def test_a_folder_that_lacks_a_jar_is_refused_and_the_jar_named(connector):
    (connector / "kafka-clients-1.0.jar").unlink()
    with pytest.raises(SparkUnavailable, match=r"`jars` names `.*`, which lacks `kafka-clients`; put its four jars"):
        build_kafka_settings(str(connector))


def test_a_java_that_ended_for_another_reason_is_not_laid_on_kafka(tmp_path):
    settings = {"spark.jars.ivy": str(tmp_path), "spark.jars.packages": f"a:b:1,{KAFKA}:4.3.0"}
    assert explain_failed_start({}).startswith("Spark's Java process ended before it was ready")
    assert explain_failed_start(settings).startswith(f"Spark could not fetch its Kafka connector `{KAFKA}:4.3.0`")
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "org.apache.spark_spark-sql-kafka-0-10_2.13-4.3.0.jar").touch()
    assert explain_failed_start(settings).startswith("Spark's Java process ended before it was ready")


def test_the_jars_we_name_are_those_the_tests_run_on():
    pom = ET.parse(ROOT / "tools" / "kafka" / "connector.xml")
    fetched = [":".join(part.text for part in list(dependency)[:3]) for dependency in pom.iterfind(".//{*}dependency")]
    assert tuple(fetched) == CONNECTOR


def test_without_pyspark_the_error_names_the_extra():
    program = "import sys; sys.modules['pyspark'] = None\nimport tidings.spark"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingExtra: tidings.spark needs PySpark; install it with `pip install 'tidings[spark]'`" in done.stderr


def test_all_names_of_the_package_are_there():
    assert all(callable(getattr(ts, name)) for name in ts.__all__)
