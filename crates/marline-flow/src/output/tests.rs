use std::fs;
use std::net::IpAddr;

use super::columns::Value;
use super::*;
use crate::anonymize::Anonymizer;
use crate::record::{Record, TunnelRecord};
use crate::testing::*;

const NAMES: &str = "flow_id,start_s,end_s,duration_s,client_ip,client_port,server_ip,server_port,transport,client_packets,\
    server_packets,client_bytes,server_bytes,client_payload_bytes,server_payload_bytes,client_syn,client_ack,client_fin,\
    server_syn,server_ack,server_fin,sni,alpn_offered,alpn_chosen,http_version,label_source";

fn records() -> Vec<Record> {
    let mut run = Run::new();
    let mut connection = Connection::new("[2001:db8::1]:40000", "[2001:db8::2]:443");
    connection.open(&mut run);
    let hello = tls_record(&client_hello("a.example", &["h2", "http/1.1"]));
    connection.send(&mut run, true, &hello, 1000);
    connection.send(&mut run, false, &tls_record(&server_hello(&["h2"])), 1000);
    connection.send(&mut run, true, &tls12_finished(), 1000);
    connection.send(&mut run, false, &tls12_finished(), 1000);
    run.packet(&udp(
        address("10.0.0.1:5000"),
        address("10.0.0.2:53"),
        b"query",
    ));
    run.records()
}

fn write(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let mut file = OutputFile::create(&path, None).unwrap();
    for record in records() {
        file.write(&record).unwrap();
    }
    assert!(!path.exists(), "it has its name only when it is complete");
    file.finish().unwrap();
    let left: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    assert_eq!(left.len(), 1);
    (directory, path)
}

#[test]
fn csv_has_a_line_for_each_record_and_nothing_for_what_is_missing() {
    let (_directory, path) = write("flows.csv");
    let text = fs::read_to_string(path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with(NAMES), "{}", lines[0]);
    assert!(
        lines[1].starts_with("1,1700000000.000000000,1700000000.000000000,0.000000000,2001:db8::1,40000,2001:db8::2,443,tcp,4,3,"),
        "{}",
        lines[1]
    );
    assert!(lines[1].contains(
        ",true,true,false,true,true,false,a.example,\"h2,http/1.1\",h2,h2,handshake,syn,"
    ));
    assert!(
        lines[2]
            .contains(",udp,1,0,33,0,5,0,false,false,false,false,false,false,,,,,,port,capture,0,")
    );
    assert_eq!(lines.len(), 3);
}

#[test]
fn texts_of_peers_are_no_formulas_in_csv() {
    let mut record = records().remove(0);
    for (text, cell) in [
        (
            "=HYPERLINK(\"http://a.example\")",
            "'=HYPERLINK(\"http://a.example\")",
        ),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("a=1", "a=1"),
        ("'a", "'a"),
    ] {
        record.sni = Some(text.into());
        record.alpn_offered = Some(text.into());
        record.alpn_chosen = Some(text.into());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.csv");
        let mut file = OutputFile::create(&path, None).unwrap();
        file.write(&record).unwrap();
        file.finish().unwrap();
        let mut lines = ::csv::Reader::from_path(path).unwrap();
        let names = lines.headers().unwrap().clone();
        let row = lines.records().next().unwrap().unwrap();
        let cells = names.iter().zip(&row);
        let texts = cells.filter(|(name, _)| name.starts_with("alpn_") || *name == "sni");
        assert_eq!(texts.map(|(_, cell)| cell).collect::<Vec<_>>(), [cell; 3]);
    }
}

#[test]
fn a_client_hello_writes_no_formula() {
    for name in [
        "=1+2",
        "+1",
        "-1",
        "@sum(a1)",
        "=cmd|'/c calc'!a0",
        "\t=1",
        "a;=1;b",
    ] {
        let mut run = Run::new();
        let mut connection = Connection::new("10.0.0.1:40000", "10.0.0.2:443");
        connection.open(&mut run);
        let hello = tls_record(&client_hello(name, &["=1+1", "h2"]));
        connection.send(&mut run, true, &hello, 1000);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.csv");
        let mut file = OutputFile::create(&path, None).unwrap();
        for record in run.records() {
            assert!(record.sni.is_some(), "{name:?} is recorded");
            file.write(&record).unwrap();
        }
        file.finish().unwrap();
        let mut lines = ::csv::Reader::from_path(path).unwrap();
        let numeric = |cell: &str| cell.parse::<f64>().is_ok();
        // Some spreadsheets end cells at semicolons.
        for cell in lines
            .records()
            .next()
            .unwrap()
            .unwrap()
            .iter()
            .flat_map(|cell| cell.split(';'))
        {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!is_formula || numeric(cell), "{name:?}: {cell:?}");
        }
    }
}

#[test]
fn anonymous_files_have_no_original_address_or_name() {
    let anonymizer = Anonymizer::new(&[7; 32]);
    let mut records = records();
    let outer = |text: &str| Some(text.parse().unwrap());
    records[0].tunnel = Some(Box::new(TunnelRecord {
        kinds: "gtp".into(),
        client_ip: outer("198.51.100.1"),
        server_ip: outer("2001:db8:ffff::2"),
        client_ids: None,
        server_ids: None,
    }));
    let mut originals = vec!["a.example".to_owned()];
    let outer = records.iter().filter_map(|record| record.tunnel.as_ref());
    let outer = outer.flat_map(|tunnel| [tunnel.client_ip, tunnel.server_ip]);
    let inner = records.iter().flat_map(|r| [r.client.ip, r.server.ip]);
    for address in inner.chain(outer.flatten()) {
        originals.push(address.to_string());
        assert_ne!(anonymizer.address(address), address);
    }
    // By the type of their values: columns that are added are covered.
    for column in &columns::TABLE {
        let before = column.value.read(&records[0], None);
        let after = column.value.read(&records[0], Some(&anonymizer));
        let is_identity = matches!(before, Value::Address(_) | Value::Host(_));
        assert_eq!(before != after, is_identity, "{}", column.name);
    }
    for name in ["flows.csv", "flows.ipfix"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let mut file = OutputFile::create(&path, Some(anonymizer.clone())).unwrap();
        for record in &records {
            file.write(record).unwrap();
        }
        file.finish().unwrap();
        let bytes = fs::read(path).unwrap();
        let has = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        for original in &originals {
            assert!(!has(original.as_bytes()), "{name} has {original}");
            match original.parse() {
                Ok(IpAddr::V4(address)) => assert!(!has(&address.octets()), "{name}"),
                Ok(IpAddr::V6(address)) => assert!(!has(&address.octets()), "{name}"),
                Err(_) => {}
            }
        }
        if name.ends_with("csv") {
            let address = anonymizer.address(records[0].client.ip).to_string();
            assert!(has(address.as_bytes()) && has(anonymizer.name("a.example").as_bytes()));
        }
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_has_the_same_values_as_csv() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    let (_directory, csv) = write("flows.csv");
    let (_directory2, path) = write("flows.parquet");
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let mut lines = ::csv::Reader::from_path(csv).unwrap();
    let names = lines.headers().unwrap().clone();
    let mut rows = reader.get_row_iter(None).unwrap();
    for line in lines.records() {
        let line = line.unwrap();
        let row = rows.next().unwrap().unwrap();
        let columns: Vec<_> = row.get_column_iter().collect();
        assert_eq!(columns.len(), line.len());
        for ((name, value), (expected_name, text)) in
            columns.into_iter().zip(names.iter().zip(&line))
        {
            assert_eq!(name, expected_name);
            let value = match value {
                Field::Null => String::new(),
                Field::Str(text) => text.clone(),
                Field::Double(value) => format!("{value:.9}"),
                other => other.to_string(),
            };
            assert_eq!(value, text, "{name}");
        }
    }
    assert!(rows.next().is_none());
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_is_written_in_row_groups() {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let mut file = OutputFile::create(&path, None).unwrap();
    let record = &records()[0];
    let rows = crate::limits::ROW_GROUP + 10;
    for _ in 0..rows {
        file.write(record).unwrap();
    }
    file.finish().unwrap();
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 2);
    assert_eq!(reader.metadata().file_metadata().num_rows(), rows as i64);
}

#[test]
fn an_export_that_ends_early_leaves_nothing_and_keeps_the_former_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.csv");
    fs::write(&path, "former").unwrap();
    let mut file = OutputFile::create(&path, None).unwrap();
    file.write(&records()[0]).unwrap();
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), "former");
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
}

#[test]
fn a_name_without_a_format_is_refused() {
    for name in ["flows", "flows.txt", "flows.csv.gz"] {
        let Err(error) = OutputFile::create(name.as_ref(), None) else {
            panic!("{name} was created");
        };
        assert!(error.to_string().contains(".csv"), "{error}");
    }
}
