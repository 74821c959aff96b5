//! Any bytes give a structure or an error: the structures that have no checksum to hide behind.

use proptest::prelude::*;
use pumice_format::btree1::{ChunkNode, GroupNode};
use pumice_format::local_heap::LocalHeap;
use pumice_format::object_header::{Continuation, ObjectHeader};
use pumice_format::superblock::{SIGNATURE, Superblock};
use pumice_format::symbol_table_node::SymbolTableNode;
use pumice_format::{Context, Sizes};

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => 0u8..9, 1 => any::<u8>()], 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn decoders_are_total(
        tail in bytes(),
        offset in 0u8..20,
        length in 0u8..20,
        address: u64,
        rank in prop_oneof![0usize..5, any::<usize>()],
    ) {
        let context = Context::new(Sizes { offset, length }).at(address);
        let with = |head: &[u8]| [head, &tail].concat();
        let _ = Superblock::decode(&with(&SIGNATURE), address);
        let _ = SymbolTableNode::decode(&with(b"SNOD\x01\x00"), &context);
        let _ = LocalHeap::decode(&with(b"HEAP\x00"), &context);
        let _ = LocalHeap::string(&tail, address, address);
        let _ = GroupNode::decode(&with(b"TREE\x00"), &context);
        let _ = ChunkNode::decode(&with(b"TREE\x01"), &context, rank);
        let _ = Continuation::decode(&tail, &context);
        for head in [&b"OHDR\x02"[..], &[1, 0]] {
            let _ = ObjectHeader::measure(&with(head), address);
            if let Ok(mut header) = ObjectHeader::decode(&with(head), &context) {
                let _ = header.continuations(&context);
                let _ = header.decode_continuation(&tail, &context);
                let _ = header.encode(3, &mut Vec::new());
            }
        }
    }
}
