//! Computing an expression for many elements, operation by operation.

use super::{Node, Operator};
use bytemuck::Pod;

/// Elements that are computed before the next ones: few enough to stay in the processor's cache.
pub(super) const AT_ONCE: usize = 4096;

/// A number of this machine.
pub(super) trait Scalar: Pod {
    fn to_f64(self) -> f64;
    fn from_f64(value: f64) -> Self;
    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($name:ident)*) => {
        $(
            impl Scalar for $name {
                fn to_f64(self) -> f64 {
                    self as f64
                }
                fn from_f64(value: f64) -> Self {
                    value as $name
                }
                fn add(self, other: Self) -> Self {
                    self.wrapping_add(other)
                }
                fn subtract(self, other: Self) -> Self {
                    self.wrapping_sub(other)
                }
                fn multiply(self, other: Self) -> Self {
                    self.wrapping_mul(other)
                }
                fn divide(self, other: Self) -> Self {
                    if other == 0 { 0 } else { self.wrapping_div(other) }
                }
            }
        )*
    };
}

macro_rules! floats {
    ($($name:ident)*) => {
        $(
            impl Scalar for $name {
                fn to_f64(self) -> f64 {
                    f64::from(self)
                }
                fn from_f64(value: f64) -> Self {
                    value as $name
                }
                fn add(self, other: Self) -> Self {
                    self + other
                }
                fn subtract(self, other: Self) -> Self {
                    self - other
                }
                fn multiply(self, other: Self) -> Self {
                    self * other
                }
                fn divide(self, other: Self) -> Self {
                    self / other
                }
            }
        )*
    };
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }
floats! { f32 f64 }

/// Replaces elements, packed but not necessarily aligned, by their transforms.
pub(super) fn evaluate<T: Scalar>(root: &Node, elements: &mut [u8]) {
    let mut values = vec![T::zeroed(); AT_ONCE.min(elements.len() / size_of::<T>())];
    for part in elements.chunks_mut(AT_ONCE * size_of::<T>()) {
        let values = &mut values[..part.len() / size_of::<T>()];
        bytemuck::cast_slice_mut::<T, u8>(values).copy_from_slice(part);
        let result = match value_of(root, values) {
            Value::Number(number) => vec![T::from_f64(number); values.len()],
            Value::Elements(result) => result,
        };
        part.copy_from_slice(bytemuck::cast_slice(&result));
    }
}

/// The value of a node.
enum Value<T> {
    Number(f64),
    Elements(Vec<T>),
}

fn value_of<T: Scalar>(node: &Node, elements: &[T]) -> Value<T> {
    let (operator, left, right) = match node {
        Node::Integer(value) => return Value::Number(*value as f64),
        Node::Float(value) => return Value::Number(*value),
        Node::Element => return Value::Elements(elements.to_vec()),
        Node::Operation(operator, left, right) => (*operator, left, right),
    };
    match (value_of(left, elements), value_of(right, elements)) {
        (Value::Elements(mut left), Value::Number(right)) => {
            match operator {
                Operator::Add => each(&mut left, |value| value + right),
                Operator::Subtract => each(&mut left, |value| value - right),
                Operator::Multiply => each(&mut left, |value| value * right),
                Operator::Divide => each(&mut left, |value| value / right),
            }
            Value::Elements(left)
        }
        (Value::Number(left), Value::Elements(mut right)) => {
            match operator {
                Operator::Add => each(&mut right, |value| left + value),
                Operator::Subtract => each(&mut right, |value| left - value),
                Operator::Multiply => each(&mut right, |value| left * value),
                Operator::Divide => each(&mut right, |value| left / value),
            }
            Value::Elements(right)
        }
        (Value::Elements(mut left), Value::Elements(right)) => {
            match operator {
                Operator::Add => pairs(&mut left, &right, T::add),
                Operator::Subtract => pairs(&mut left, &right, T::subtract),
                Operator::Multiply => pairs(&mut left, &right, T::multiply),
                Operator::Divide => pairs(&mut left, &right, T::divide),
            }
            Value::Elements(left)
        }
        // Parsing has left no operation of two numbers.
        (Value::Number(left), Value::Number(_)) => Value::Number(left),
    }
}

/// Computes each element as a double.
fn each<T: Scalar>(elements: &mut [T], operation: impl Fn(f64) -> f64) {
    elements.iter_mut().for_each(|element| *element = T::from_f64(operation(element.to_f64())));
}

/// Computes pairs of elements in their own type.
fn pairs<T: Scalar>(left: &mut [T], right: &[T], operation: impl Fn(T, T) -> T) {
    left.iter_mut().zip(right).for_each(|(left, &right)| *left = operation(*left, right));
}
