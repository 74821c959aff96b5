//! Strings and sequences that are written a chunk at a time: their references are made only when somebody
//! asks for them, and much text goes to the file without staying in memory.

use pumice::{Datatype, File, Result, Sequences, Strings};

/// Strings of different lengths, empty ones among them.
fn texts(count: usize, salt: usize) -> Strings {
    (0..count).map(|at| "pumice floats ".repeat(2)[..(at * 7 + salt) % 24].to_owned()).collect()
}

/// `all` with `part` from number `first` on.
fn replaced(all: &Strings, first: usize, part: &Strings) -> Strings {
    let new = first..first + part.len();
    (0..all.len())
        .map(|at| if new.contains(&at) { &part[at - new.start] } else { &all[at] })
        .collect()
}

#[test]
fn a_chunk_written_whole_is_read_changed_and_stored_like_any_other() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    for sparse in [false, true] {
        let path = folder.path().join("lists.h5");
        let file = File::create(&path)?;
        let builder = file.new_strings().shape([250]).chunk([100]).variable_length();
        let builder = if sparse { builder.sparse() } else { builder };
        let dataset = builder.create("s")?;
        let all = texts(250, 3);
        dataset.write_packed_strings(.., &all)?;
        assert_eq!(dataset.read_strings(..)?, all, "from memory");
        assert_eq!(
            dataset.read_strings(90..110)?,
            all.iter().skip(90).take(20).collect::<Strings>()
        );
        let some = texts(30, 11);
        dataset.write_packed_strings(85..115, &some)?;
        let all = replaced(&all, 85, &some);
        assert_eq!(dataset.read_strings(..)?, all, "changed in part");
        let whole = texts(100, 5);
        dataset.write_packed_strings(100..200, &whole)?;
        let all = replaced(&all, 100, &whole);
        // Nobody has looked at the second chunk since: what is erased has to be found first.
        if sparse {
            dataset.erase(150..160)?;
        } else {
            dataset.reset(150..160)?;
        }
        let nothing: Strings = vec![""; 10].into_iter().collect();
        let all = replaced(&all, 150, &nothing);
        assert_eq!(dataset.read_strings(..)?, all, "erased in part");
        assert_eq!(dataset.count_defined(..)?, if sparse { 240 } else { 250 });
        file.close()?;
        let file = File::open(&path)?;
        assert_eq!(file.dataset("s")?.read_strings(..)?, all, "from the file");
    }
    Ok(())
}

#[test]
fn much_text_goes_past_the_cache_and_comes_back() -> Result<()> {
    let file = File::in_memory()?;
    let dataset =
        file.new_strings().shape([200_000]).chunk([60_000]).variable_length().create("s")?;
    let all = texts(200_000, 1);
    dataset.write_packed_strings(.., &all)?;
    assert_eq!(dataset.cache_stats().resident, 0, "nothing of it stays");
    assert_eq!(dataset.read_strings(..)?, all);
    // Chunks that are there are replaced in the same way.
    let others = texts(200_000, 8);
    dataset.write_packed_strings(.., &others)?;
    assert_eq!(dataset.read_strings(..)?, others);
    Ok(())
}

#[test]
fn a_null_byte_is_refused_wherever_it_is_and_nothing_is_written() -> Result<()> {
    let file = File::in_memory()?;
    let dataset = file.new_strings().shape([3]).variable_length().create("s")?;
    let old = ["a", "b", "c"];
    dataset.write_strings(.., &old)?;
    for place in [0, 1_500_000, 2_999_999] {
        let mut text = vec![b'x'; 3_000_000];
        text[place] = 0;
        let bad = Strings::from_parts(vec![0, 1_000_000, 2_000_000, 3_000_000], text).unwrap();
        let error = dataset.write_packed_strings(.., &bad).unwrap_err().to_string();
        assert!(error.contains("null byte"), "{error}");
    }
    assert_eq!(dataset.read_strings(..)?, old);
    Ok(())
}

#[test]
fn sequences_of_wide_values_keep_their_lengths() -> Result<()> {
    let file = File::in_memory()?;
    let builder = file.new_sequences(Datatype::f64_le()).shape([300]).chunk([100]);
    let dataset = builder.variable_length().create("walks")?;
    let walks: Sequences<f64> = (0..300).map(|at| vec![f64::from(at); at as usize % 5]).collect();
    dataset.write_sequences(.., &walks)?;
    assert_eq!(dataset.read_sequences::<f64>(..)?, walks);
    file.flush()?;
    dataset.write_sequences(250, &[vec![1.5; 9]].into_iter().collect())?;
    assert_eq!(dataset.read_sequences::<f64>(250)?[0], [1.5; 9]);
    assert_eq!(dataset.read_sequences::<f64>(251)?[0], walks[251]);
    Ok(())
}
