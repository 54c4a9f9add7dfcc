//! Primitives and receivers as a run keeps them.

use super::*;

prop_compose! {
    pub(super) fn primitive()(
        (id, summary) in (text(), text()),
        family in select(Family::ALL.to_vec()),
        condition in prop::option::of(select(vec![
            Condition::Contiguous,
            Condition::InFile,
            Condition::Unchanged,
        ])),
        (from, to, function) in (text(), text(), text()),
        movement in select(vec![
            Movement::Copy,
            Movement::Reference,
            Movement::LateCopy,
            Movement::Mapped,
            Movement::Discarded,
        ]),
        calls in prop_oneof![
            any::<u32>().prop_map(CallsPerMessage::Fixed),
            Just(CallsPerMessage::PerField),
            any::<u32>().prop_map(CallsPerMessage::Shared),
        ],
    ) -> PrimitiveFacts {
        let hop = Hop {
            from: from.into(),
            to: to.into(),
            end: End::Sender,
            mover: Mover::Kernel,
            function: function.into(),
            movement,
        };
        let transport = Transport::Udp;
        let data_path = DataPath { hops: vec![hop].into(), calls };
        PrimitiveFacts { id, summary, family, condition, transport, data_path }
    }
}

prop_compose! {
    pub(super) fn receiver()(primitive in primitive()) -> ReceiverFacts {
        let PrimitiveFacts { id, summary, data_path, .. } = primitive;
        ReceiverFacts { id, summary, hops: data_path.hops }
    }
}
