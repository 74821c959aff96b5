//! Data-transform expressions: what they give, and where they point when they are wrong.

use pumice_types::{Datatype, Element, Transform, TypeError};

fn apply<T: Element>(expression: &str, values: &[T]) -> Vec<T> {
    let transform: Transform = expression.parse().unwrap();
    let mut bytes = bytemuck::cast_slice(values).to_vec();
    transform.apply(&T::datatype(), &mut bytes).unwrap();
    bytemuck::pod_collect_to_vec(&bytes)
}

#[test]
fn integers_are_computed_as_doubles_with_numbers_and_cut_towards_zero() {
    assert_eq!(apply("x+2", &[65i64, -1]), [67, 1]);
    assert_eq!(apply("x/2", &[7i32, -7]), [3, -3]);
    assert_eq!(apply("(5/9.0)*(x-32)", &[212i32, 100, -40]), [100, 37, -40]);
    assert_eq!(apply("100 - x", &[1u8, 100]), [99, 0]);
    assert_eq!(apply("-x", &[5i16, -6]), [-5, 6]);
    assert_eq!(apply("2.75*x", &[2i8, -2]), [5, -5]);
    assert_eq!(apply("x*1000", &[200u8]), [255], "the nearest end of the range");
}

#[test]
fn numbers_among_themselves_keep_their_kind() {
    assert_eq!(apply("(5/9)*(x-32)", &[212.0f64]), [0.0], "5/9 is an integer, as in libhdf5");
    assert_eq!(apply("7/2+x", &[0.0f32]), [3.0]);
    assert_eq!(apply("7/2.+x", &[0.0f32]), [3.5]);
    assert_eq!(apply("1e1+x*0", &[3.0f64]), [10.0]);
    assert_eq!(apply("42", &[1i32, 2]), [42, 42], "no element at all");
}

#[test]
fn elements_among_themselves_are_computed_in_their_type() {
    assert_eq!(apply("x*x", &[16u8, 3]), [0, 9], "integers wrap");
    assert_eq!(apply("x/x", &[0i32, 9]), [0, 1]);
    assert_eq!(apply("((x+x)*(x-1))/x", &[3.0f32, -0.5]), [4.0, -3.0]);
    assert_eq!(apply("x - x*x - -x", &[3i64]), [-3]);
}

#[test]
fn order_and_precedence_are_those_of_arithmetic() {
    assert_eq!(apply("2+3*x-4/2", &[5.0f64]), [15.0]);
    assert_eq!(apply("100/x/5", &[2.0f64]), [10.0]);
    assert_eq!(apply("((((x))))", &[1i8]), [1]);
}

#[test]
fn other_byte_orders_and_sizes_are_transformed_too() {
    let transform: Transform = "x+2".parse().unwrap();
    let mut big = 65i64.to_be_bytes();
    transform.apply(&Datatype::i64_be(), &mut big).unwrap();
    assert_eq!(big, 67i64.to_be_bytes());
    let mut half = half::f16::from_f32(1.5).to_be_bytes();
    transform.apply(&Datatype::f16_be(), &mut half).unwrap();
    assert_eq!(half, half::f16::from_f32(3.5).to_be_bytes());
    assert!(transform.apply(&Datatype::fixed_string(3), &mut [0; 3]).is_err());
}

#[test]
fn many_elements_are_transformed_like_few() {
    let values: Vec<i32> = (0..20_000).collect();
    let wanted: Vec<i32> = values.iter().map(|value| value * 3 + 1).collect();
    assert_eq!(apply("3*x+1", &values), wanted);
}

#[test]
fn errors_point_at_the_character() {
    for (expression, at) in [
        ("", 0),
        ("x+", 2),
        ("x+*2", 2),
        ("(x", 2),
        ("x)", 1),
        ("2 x", 2),
        ("3.4.5*x", 3),
        ("x+1e", 4),
        ("x+y", 2),
        ("x $ 2", 2),
        ("é+x", 0),
        ("5/0*x", 3),
        ("()", 1),
        ("99999999999999999999+x", 0),
        ("2x", 1),
    ] {
        match expression.parse::<Transform>() {
            Err(TypeError::Transform { at: found, .. }) => assert_eq!(found, at, "{expression}"),
            other => panic!("{expression}: {other:?}"),
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed_to_the_end_of_the_stack() {
    let deep = format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(deep.parse::<Transform>().is_err());
    assert!("-".repeat(100_000).parse::<Transform>().is_err());
    assert!(format!("x{}", "+x".repeat(100_000)).parse::<Transform>().is_err());
    assert!(format!("x{}", "+x".repeat(900)).parse::<Transform>().is_ok());
}
