//! Chunks as HDF5 2.0 and its plugins wrote them, byte for byte.

use pumice_filter::{FilterSpec, Pipeline};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal")).collect()
}

fn pipeline(specs: Vec<FilterSpec>) -> Pipeline {
    Pipeline::new(specs).expect("few filters")
}

#[test]
fn shuffle_writes_and_reads_what_hdf5_writes() {
    let cases = [
        (2, "0401050206030704080509060a07", "0405060708090a01020304050607"),
        (
            8,
            "000000000000f83f00000000000002c0000000205fa00242",
            "00000000000000000000002000005f0000a0f802023fc042",
        ),
    ];
    for (size, plain, stored) in cases {
        let pipeline = pipeline(vec![FilterSpec::shuffle(size)]);
        assert_eq!(pipeline.encode(bytes(plain)).unwrap(), (bytes(stored), 0));
        assert_eq!(pipeline.decode(bytes(stored), 0, 1000).unwrap(), bytes(plain));
    }
}

#[test]
fn fletcher32_writes_and_reads_what_hdf5_writes() {
    let pattern = |len: usize| (0..len).map(|n| (n * 37 + 11) as u8).collect::<Vec<u8>>();
    let cases = [
        (pattern(1), "000b000b"),
        (pattern(2), "300b300b"),
        (pattern(3), "3060606b"),
        (pattern(7), "6fe9b955"),
        (pattern(8), "7de9c755"),
        (pattern(722), "ac7eeba8"),
        (pattern(1441), "5971ffb1"),
        (vec![255; 2000], "ffffffff"),
        (vec![255; 5], "00ff00ff"),
        (vec![0; 10], "00000000"),
    ];
    let pipeline = pipeline(vec![FilterSpec::fletcher32()]);
    for (plain, checksum) in cases {
        let stored = [plain.clone(), bytes(checksum)].concat();
        assert_eq!(pipeline.encode(plain.clone()).unwrap(), (stored.clone(), 0));
        assert_eq!(pipeline.decode(stored, 0, plain.len()).unwrap(), plain);
    }
}

#[test]
fn a_chunk_shuffled_deflated_and_checksummed_by_hdf5_is_read() {
    let stored = "789c6360646266616563e7e0e4e2e6e1e5e31710141266a0000000320a00bfa30096f0";
    let specs = vec![FilterSpec::shuffle(4), FilterSpec::deflate(6), FilterSpec::fletcher32()];
    let plain: Vec<u8> = (0..20i32).flat_map(i32::to_le_bytes).collect();
    let pipeline = pipeline(specs);
    assert_eq!(pipeline.decode(bytes(stored), 0, 80).unwrap(), plain);
    assert_eq!(pipeline.decode(bytes(stored), 0, 4096).unwrap(), plain, "a limit is no size");
    assert!(pipeline.decode(bytes(stored), 0, 79).is_err());
}

#[test]
fn a_stream_of_zlib_at_its_highest_level_is_read() {
    let stored = bytes("78da2b28cdcd4c4e552840a600527c07ca");
    let pipeline = pipeline(vec![FilterSpec::deflate(9)]);
    assert_eq!(pipeline.decode(stored, 0, 20).unwrap(), b"pumice pumice pumice");
}

#[test]
fn a_chunk_of_the_zstd_plugin_is_read() {
    let stored = "28b52ffd20f0ed0100a800000102030405060708090a0b0c0d0e0f101112131400c00830070c0346\
                  803960183002cc01c38011600e18068c0073c0306004980386ed8cd80016";
    let plain: Vec<u8> = (0..60i32).flat_map(|n| (n / 3).to_le_bytes()).collect();
    let pipeline = pipeline(vec![FilterSpec::zstd(3)]);
    assert_eq!(pipeline.decode(bytes(stored), 0, 240).unwrap(), plain);
}
