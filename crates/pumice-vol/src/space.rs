//! Dataspaces: extents and selections of libhdf5 as those of the engine, and back.

use crate::abi::*;
use crate::fault::{Fault, Result, checked};
use crate::library::Api;
use pumice_bytes::Reader;
use pumice_space::{Extent, HyperslabAxis, Selection, serial};
use std::ffi::c_int;

/// `H5S_class_t`.
const SCALAR: c_int = 0;
const NULL: c_int = 2;
/// `H5S_sel_type`.
const SELECT_NONE: c_int = 0;
const SELECT_POINTS: c_int = 1;
const SELECT_ALL: c_int = 3;
/// `H5S_seloper_t`.
const SET: c_int = 0;
const OR: c_int = 1;

/// The extent of a dataspace.
pub(crate) fn extent(api: &Api, space: Hid) -> Result<Extent> {
    // SAFETY: plain calls; the buffers have as many elements as the dataspace has dimensions.
    unsafe {
        match checked((api.H5Sget_simple_extent_type)(space), "H5Sget_simple_extent_type")? {
            SCALAR => return Ok(Extent::Scalar),
            NULL => return Ok(Extent::Null),
            _ => {}
        }
        let rank = checked((api.H5Sget_simple_extent_ndims)(space), "H5Sget_simple_extent_ndims")?;
        let mut dims = vec![0; rank as usize];
        let mut max = vec![0; rank as usize];
        let got = (api.H5Sget_simple_extent_dims)(space, dims.as_mut_ptr(), max.as_mut_ptr());
        checked(got, "H5Sget_simple_extent_dims")?;
        Ok(Extent::with_max(&dims, &max)?)
    }
}

/// A new dataspace with everything selected.
pub(crate) fn made(api: &Api, extent: &Extent) -> Result<Hid> {
    // SAFETY: plain calls; the buffers have as many elements as the extent has dimensions.
    let space = unsafe {
        match extent {
            Extent::Scalar => (api.H5Screate)(SCALAR),
            Extent::Null => (api.H5Screate)(NULL),
            _ => {
                let (dims, max) = (extent.dims(), extent.max_dims());
                (api.H5Screate_simple)(dims.len() as c_int, dims.as_ptr(), max.as_ptr())
            }
        }
    };
    checked(space, "H5Screate_simple")
}

/// The selection of a dataspace, moved as `H5Soffset_simple` says.
pub(crate) fn selection(api: &Api, space: Hid) -> Result<Selection> {
    let selection = unmoved(api, space)?;
    if selection.is_all() || selection.is_none() || selection.is_unlimited() {
        return Ok(selection);
    }
    // SAFETY: plain calls; the buffers have as many elements as the dataspace has dimensions.
    let first = unsafe {
        let rank = checked((api.H5Sget_simple_extent_ndims)(space), "H5Sget_simple_extent_ndims")?;
        let (mut first, mut last) = (vec![0; rank as usize], vec![0; rank as usize]);
        let got = (api.H5Sget_select_bounds)(space, first.as_mut_ptr(), last.as_mut_ptr());
        checked(got, "H5Sget_select_bounds")?;
        first
    };
    let vast = vec![u64::MAX - 1; first.len()];
    let Some((own, _)) = selection.bounds(&vast) else { return Ok(selection) };
    if own.as_slice() == first {
        return Ok(selection);
    }
    let offset: Vec<i64> =
        first.iter().zip(&own).map(|(there, here)| there.wrapping_sub(*here) as i64).collect();
    Ok(selection.translate(&offset)?)
}

/// The selection of a dataspace as it was made.
fn unmoved(api: &Api, space: Hid) -> Result<Selection> {
    // SAFETY: plain calls; buffers are as long as the library says.
    unsafe {
        match checked((api.H5Sget_select_type)(space), "H5Sget_select_type")? {
            SELECT_ALL => return Ok(Selection::all()),
            SELECT_NONE => return Ok(Selection::none()),
            SELECT_POINTS => return points(api, space),
            _ => {}
        }
        if checked((api.H5Sis_regular_hyperslab)(space), "H5Sis_regular_hyperslab")? > 0 {
            return regular(api, space);
        }
        let mut length = 0;
        let measured = (api.H5Sencode2)(space, std::ptr::null_mut(), &mut length, DEFAULT);
        checked(measured, "H5Sencode2")?;
        let mut bytes = vec![0u8; length];
        let encoded = (api.H5Sencode2)(space, bytes.as_mut_ptr().cast(), &mut length, DEFAULT);
        checked(encoded, "H5Sencode2")?;
        let mut reader = Reader::new("dataspace", 0, &bytes);
        let (_, selection) = serial::decode_dataspace(&mut reader)?;
        Ok(selection)
    }
}

/// # Safety
/// The dataspace has points selected.
unsafe fn points(api: &Api, space: Hid) -> Result<Selection> {
    // SAFETY: the buffer has room for all coordinates.
    unsafe {
        let rank = checked((api.H5Sget_simple_extent_ndims)(space), "H5Sget_simple_extent_ndims")?;
        let count = (api.H5Sget_select_elem_npoints)(space);
        let count = checked(count, "H5Sget_select_elem_npoints")? as u64;
        let mut coordinates = vec![0; count as usize * rank as usize];
        let list = (api.H5Sget_select_elem_pointlist)(space, 0, count, coordinates.as_mut_ptr());
        checked(list, "H5Sget_select_elem_pointlist")?;
        Ok(Selection::points(rank as usize, coordinates)?)
    }
}

/// # Safety
/// The dataspace has a regular hyperslab selected.
unsafe fn regular(api: &Api, space: Hid) -> Result<Selection> {
    // SAFETY: the buffers have as many elements as the dataspace has dimensions.
    unsafe {
        let rank = checked((api.H5Sget_simple_extent_ndims)(space), "H5Sget_simple_extent_ndims")?;
        let mut parts = [const { Vec::new() }; 4];
        parts.iter_mut().for_each(|part| part.resize(rank as usize, 0));
        let [start, stride, count, block] = &mut parts;
        let got = (api.H5Sget_regular_hyperslab)(
            space,
            start.as_mut_ptr(),
            stride.as_mut_ptr(),
            count.as_mut_ptr(),
            block.as_mut_ptr(),
        );
        checked(got, "H5Sget_regular_hyperslab")?;
        let [start, stride, count, block] = &parts;
        Ok(Selection::hyperslab(start, stride, count, block)?)
    }
}

/// Selects cells in a dataspace.
pub(crate) fn select(api: &Api, space: Hid, selection: &Selection, dims: &[u64]) -> Result<()> {
    if selection.is_all() {
        return Ok(());
    }
    if let Some(axes) = selection.regular() {
        let part = |of: fn(&HyperslabAxis) -> u64| axes.iter().map(of).collect::<Vec<u64>>();
        let (start, stride) = (part(|axis| axis.start), part(|axis| axis.stride));
        let (count, block) = (part(|axis| axis.count), part(|axis| axis.block));
        // SAFETY: the lists have as many elements as the dataspace has dimensions.
        let selected = unsafe {
            (api.H5Sselect_hyperslab)(
                space,
                SET,
                start.as_ptr(),
                stride.as_ptr(),
                count.as_ptr(),
                block.as_ptr(),
            )
        };
        return checked(selected, "H5Sselect_hyperslab").map(drop);
    }
    if let Some((rank, coordinates)) = selection.as_points() {
        let count = coordinates.len() / rank.max(1);
        // SAFETY: the list has a coordinate for every point and dimension.
        let selected = unsafe { (api.H5Sselect_elements)(space, SET, count, coordinates.as_ptr()) };
        return checked(selected, "H5Sselect_elements").map(drop);
    }
    // SAFETY: a plain call.
    checked(unsafe { (api.H5Sselect_none)(space) }, "H5Sselect_none")?;
    let mut failed = Ok(());
    selection.for_each_block(dims, |start, last| {
        let ones = vec![1u64; start.len()];
        let block: Vec<u64> = start.iter().zip(last).map(|(from, to)| to - from + 1).collect();
        // SAFETY: the lists have as many elements as the dataspace has dimensions.
        let selected = unsafe {
            (api.H5Sselect_hyperslab)(
                space,
                OR,
                start.as_ptr(),
                std::ptr::null(),
                ones.as_ptr(),
                block.as_ptr(),
            )
        };
        if selected < 0 {
            failed = Err(Fault::Library("H5Sselect_hyperslab"));
        }
    });
    failed
}

/// Which cells of a dataset, and which places of which shape in memory.
pub(crate) struct Transfer {
    pub(crate) selection: Selection,
    /// Places and shape of the memory, unless it has the cells one after another.
    pub(crate) memory: Option<(Selection, Vec<u64>)>,
    /// How many elements the memory has.
    pub(crate) elements: u64,
}

/// What the dataspaces of a read or a write mean, for a dataset of this extent.
pub(crate) fn transfer(api: &Api, extent: &Extent, file: Hid, memory: Hid) -> Result<Transfer> {
    if file == SPACE_PLIST || memory == SPACE_PLIST {
        return Err(Fault::Unsupported("selections in transfer property lists".into()));
    }
    let dims = extent.dims();
    let chosen = match file {
        SPACE_ALL => Selection::all(),
        space => {
            let selection = selection(api, space)?;
            // SAFETY: a plain call.
            let rank = unsafe { (api.H5Sget_simple_extent_ndims)(space) };
            if checked(rank, "H5Sget_simple_extent_ndims")? as usize != dims.len() {
                return Err(Fault::Invalid("a file dataspace of another rank".into()));
            }
            selection
        }
    };
    let count = if extent.is_null() { 0 } else { chosen.count(dims) };
    let packed = |selection| Transfer { selection, memory: None, elements: count };
    if memory == SPACE_BLOCK {
        return Ok(packed(chosen));
    }
    if memory == SPACE_ALL {
        // The memory has the shape of the dataset, and the same cells of it are meant.
        if chosen.is_all() {
            return Ok(packed(chosen));
        }
        let elements = dims.iter().product();
        let memory = Some((chosen.clone(), dims.to_vec()));
        return Ok(Transfer { selection: chosen, memory, elements });
    }
    let shape = self::extent(api, memory)?;
    let places = selection(api, memory)?;
    let wanted = if shape.is_null() { 0 } else { places.count(shape.dims()) };
    if wanted != count {
        return Err(Fault::Invalid(format!(
            "src and dest dataspaces have different number of elements selected: {wanted} in memory, {count} in the file"
        )));
    }
    let elements = if shape.is_null() { 0 } else { shape.dims().iter().product() };
    if places.is_all() || count == 0 || places.covers(shape.dims()) {
        return Ok(packed(chosen));
    }
    Ok(Transfer { selection: chosen, memory: Some((places, shape.dims().to_vec())), elements })
}
