//! Steps through the cells of a product of axes, in row-major order, by additions alone.

use super::axis::{Axis, AxisSpans};
use smallvec::SmallVec;

/// Walks the product of axes cell by cell, with two linear positions: that of the cell in the
/// array, and that in memory, which moves one step per selected cell.
#[derive(Clone, Debug)]
pub(crate) struct Odometer {
    wheels: SmallVec<[Wheel; 4]>,
    /// The sum of coordinate times cell stride.
    pub(crate) cell: u64,
    /// The sum of index times memory stride.
    pub(crate) memory: u64,
}

#[derive(Clone, Debug)]
struct Wheel {
    axis: Axis,
    spans: AxisSpans,
    at: u64,
    high: u64,
    index: u64,
    cell_stride: u64,
    memory_stride: u64,
}

impl Wheel {
    fn rewind(&mut self) {
        self.spans = self.axis.spans();
        (self.at, self.high) = self.spans.next().unwrap_or((0, 0));
        self.index = 0;
    }
}

impl Odometer {
    /// Stands at the first cell. Each wheel: axis (not empty), cell stride, memory stride.
    pub(crate) fn new(axes: impl Iterator<Item = (Axis, u64, u64)>) -> Self {
        let (mut cell, mut memory) = (0, 0);
        let wheels = axes.map(|(axis, cell_stride, memory_stride)| {
            let spans = axis.spans();
            let (at, high, index) = (0, 0, 0);
            let mut wheel = Wheel { axis, spans, at, high, index, cell_stride, memory_stride };
            wheel.rewind();
            cell += wheel.at * cell_stride;
            memory += wheel.index * memory_stride;
            wheel
        });
        let wheels = wheels.collect();
        Self { wheels, cell, memory }
    }

    /// The number of neighbouring cells from this one on along the fastest axis, and how far each
    /// moves the two positions. Moves to the last of them.
    pub(crate) fn take_run(&mut self) -> (u64, u64, u64) {
        let Some(wheel) = self.wheels.last_mut() else { return (1, 0, 0) };
        let further = wheel.high - wheel.at;
        self.cell += further * wheel.cell_stride;
        self.memory += further * wheel.memory_stride;
        wheel.at = wheel.high;
        wheel.index += further;
        (further + 1, wheel.cell_stride, wheel.memory_stride)
    }

    /// Moves to the next cell; `false` at the end.
    pub(crate) fn advance(&mut self) -> bool {
        for wheel in self.wheels.iter_mut().rev() {
            let next = if wheel.at < wheel.high {
                Some((wheel.at + 1, wheel.high))
            } else {
                wheel.spans.next()
            };
            if let Some((at, high)) = next {
                self.cell += (at - wheel.at) * wheel.cell_stride;
                self.memory += wheel.memory_stride;
                (wheel.at, wheel.high) = (at, high);
                wheel.index += 1;
                return true;
            }
            self.cell -= (wheel.at - wheel.axis.first) * wheel.cell_stride;
            self.memory -= wheel.index * wheel.memory_stride;
            wheel.rewind();
        }
        false
    }
}
