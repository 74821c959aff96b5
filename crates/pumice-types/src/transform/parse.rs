//! Parsing an expression to a tree, by recursive descent. Errors name the character that they are
//! at.

use super::{Node, Operator};
use crate::TypeError;

/// The deepest nesting of parentheses and signs.
const MOST_DEPTH: usize = 200;
/// The most operations of an expression, which bound the depth of its tree.
const MOST_OPERATIONS: usize = 1000;

pub(super) fn parse(expression: &str) -> Result<Node, TypeError> {
    let mut parser = Parser { expression, at: 0, name: None, depth: 0, operations: 0 };
    let root = parser.sum()?;
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser<'a> {
    expression: &'a str,
    /// The byte that comes next.
    at: usize,
    /// The name of the element.
    name: Option<&'a str>,
    depth: usize,
    operations: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.expression.get(self.at..).unwrap_or_default()
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    fn sum(&mut self) -> Result<Node, TypeError> {
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some('+') => Operator::Add,
                Some('-') => Operator::Subtract,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.product()?;
            left = self.operation(operator, left, right)?;
        }
    }

    fn product(&mut self) -> Result<Node, TypeError> {
        let mut left = self.factor()?;
        loop {
            let operator = match self.peek() {
                Some('*') => Operator::Multiply,
                Some('/') => Operator::Divide,
                _ => return Ok(left),
            };
            self.at += 1;
            let right = self.factor()?;
            left = self.operation(operator, left, right)?;
        }
    }

    fn factor(&mut self) -> Result<Node, TypeError> {
        const WANTED: &str = "a number, a name or '('";
        match self.peek() {
            Some(sign @ ('+' | '-')) => {
                self.deeper()?;
                self.at += 1;
                let factor = self.factor()?;
                self.depth -= 1;
                let operator = if sign == '+' { Operator::Add } else { Operator::Subtract };
                self.operation(operator, Node::Integer(0), factor)
            }
            Some('(') => {
                self.deeper()?;
                self.at += 1;
                let inside = self.sum()?;
                if self.peek() != Some(')') {
                    return Err(self.unexpected("')' or an operator"));
                }
                self.at += 1;
                self.depth -= 1;
                Ok(inside)
            }
            Some('0'..='9' | '.') => self.number(),
            Some(first) if first.is_ascii_alphabetic() => self.name(),
            _ => Err(self.unexpected(WANTED)),
        }
    }

    fn deeper(&mut self) -> Result<(), TypeError> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.unexpected("fewer nested parentheses"));
        }
        Ok(())
    }

    fn name(&mut self) -> Result<Node, TypeError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let name = &rest[..end];
        if *self.name.get_or_insert(name) != name {
            return Err(self.unexpected("one name for the element"));
        }
        self.at += end;
        Ok(Node::Element)
    }

    fn number(&mut self) -> Result<Node, TypeError> {
        let rest = self.rest();
        let digits = |from: usize| {
            let tail = &rest[from..];
            from + tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len())
        };
        let mut end = digits(0);
        let whole = end;
        if rest[end..].starts_with('.') {
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = end + 1 + sign;
            end = digits(exponent);
            if end == exponent {
                self.at += exponent;
                return Err(self.unexpected("digits of an exponent"));
            }
        }
        let text = &rest[..end];
        let node = if end == whole {
            text.parse().ok().map(Node::Integer)
        } else {
            text.parse().ok().map(Node::Float)
        };
        let node = node.ok_or_else(|| self.unexpected("a number of at most 64 bits"))?;
        self.at += end;
        if self.rest().starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') {
            return Err(self.unexpected("an operator or the end"));
        }
        Ok(node)
    }

    /// An operation, or its result if it has no element.
    fn operation(
        &mut self,
        operator: Operator,
        left: Node,
        right: Node,
    ) -> Result<Node, TypeError> {
        let number = |node: &Node| match node {
            Node::Integer(value) => Some(*value as f64),
            Node::Float(value) => Some(*value),
            _ => None,
        };
        self.operations += 1;
        if self.operations > MOST_OPERATIONS {
            return Err(self.unexpected("fewer operations"));
        }
        if let (Node::Integer(left), Node::Integer(right)) = (&left, &right) {
            let result = match operator {
                Operator::Add => left.checked_add(*right),
                Operator::Subtract => left.checked_sub(*right),
                Operator::Multiply => left.checked_mul(*right),
                Operator::Divide => left.checked_div(*right),
            };
            return result
                .map(Node::Integer)
                .ok_or_else(|| self.unexpected("integers whose result is one of 64 bits"));
        }
        Ok(match (number(&left), number(&right)) {
            (Some(left), Some(right)) => Node::Float(match operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                Operator::Divide => left / right,
            }),
            _ => Node::Operation(operator, Box::new(left), Box::new(right)),
        })
    }

    fn unexpected(&self, expected: &'static str) -> TypeError {
        let at = self.at.min(self.expression.len());
        let before = self.expression.get(..at).unwrap_or_default();
        let found = match self.rest().chars().next() {
            Some(character) => format!("'{character}'"),
            None => "the end".to_owned(),
        };
        TypeError::Transform {
            expression: self.expression.to_owned(),
            at: before.chars().count(),
            expected,
            found,
        }
    }
}
