//! LIRS.
use super::Policy;
/// LIRS
#[derive(Debug)]
pub struct Lirs {}
impl Lirs {
    /// new
    pub fn new(_capacity: u64) -> Self {
        Lirs {}
    }
}
impl Policy for Lirs {
    fn admit(&mut self, _id: u32, _identity: u64, _weight: u64) {
        todo!()
    }
    fn touch(&mut self, _id: u32) {
        todo!()
    }
    fn reweigh(&mut self, _id: u32, _weight: u64) {
        todo!()
    }
    fn evict(&mut self, _id: u32) {
        todo!()
    }
    fn remove(&mut self, _id: u32) {
        todo!()
    }
    fn coldest(&self, _visit: &mut dyn FnMut(u32) -> bool) {
        todo!()
    }
    fn set_capacity(&mut self, _capacity: u64) {
        todo!()
    }
}
