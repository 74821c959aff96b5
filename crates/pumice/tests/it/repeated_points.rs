//! Of a cell that a list of points has several times, the last value counts, however large elements are.

use pumice::{AllocationTime, Datatype, File, Selection};

#[test]
fn the_last_value_of_a_repeated_point_counts() {
    const CELLS: u64 = 40;
    let file = File::in_memory().unwrap();
    for size in [1usize, 100, 1024, 5000, 70_000, 1 << 20] {
        for layout in ["contiguous", "compact", "chunked", "deflate", "sparse"] {
            if layout == "compact" && size > 1024 {
                continue;
            }
            let datatype = Datatype::opaque(size as u32, "bytes");
            let builder = file.new_dataset_of(datatype).shape([CELLS]);
            let builder = match layout {
                "compact" => builder.compact(),
                "chunked" => builder.chunk([7]).allocation_time(AllocationTime::Early),
                "deflate" => builder.chunk([7]).deflate(1),
                "sparse" => builder.chunk([7]).sparse(),
                _ => builder,
            };
            let dataset = builder.create(&format!("{layout} {size}")).unwrap();
            // Up and down, neighbours and the same cell side by side, each with a value of its own.
            let places: Vec<u64> = (0..60).map(|n: u64| n * n * 7 % 11 + n % 3 * 13).collect();
            let values: Vec<u8> = (0..60).flat_map(|n| vec![n as u8 + 1; size]).collect();
            let points = Selection::points(1, places.clone()).unwrap();
            dataset.write_bytes(&points, &values).unwrap();
            let mut expected = vec![0u8; CELLS as usize];
            places.iter().zip(1..).for_each(|(&place, value)| expected[place as usize] = value);
            let found = dataset.read_bytes(..).unwrap();
            for (cell, bytes) in found.chunks(size).enumerate() {
                let same = bytes.iter().all(|&byte| byte == expected[cell]);
                assert!(same, "{layout}, {size} bytes, cell {cell}: {}", bytes[0]);
            }
        }
    }
}
