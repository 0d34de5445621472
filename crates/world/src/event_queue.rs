//! Events of a world in the order in which they happen.
//!
//! Events of the same time happen by rank, lower first, and then in the order in which they were
//! put in. Nothing else decides, so that the same calls give the same order on every machine.

use std::collections::BTreeMap;

/// The name of an event that has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    at: u64,
    rank: u32,
    number: u64,
}

/// A queue of events.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    events: BTreeMap<Ticket, T>,
    next: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        EventQueue {
            events: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> EventQueue<T> {
    /// Puts an event in that happens at the time `at`, in nanoseconds.
    pub fn push(&mut self, at: u64, rank: u32, event: T) -> Ticket {
        let ticket = Ticket {
            at,
            rank,
            number: self.next,
        };
        self.next += 1;
        self.events.insert(ticket, event);
        ticket
    }

    /// Takes an event out before it happens. There is none if it has happened.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        self.events.remove(&ticket)
    }

    /// Returns the time of the next event.
    pub fn next_time(&self) -> Option<u64> {
        self.events.first_key_value().map(|(ticket, _)| ticket.at)
    }

    /// Takes the next event out if its time is `until` at the latest.
    pub fn pop(&mut self, until: u64) -> Option<(u64, T)> {
        if self.next_time()? > until {
            return None;
        }
        self.events
            .pop_first()
            .map(|(ticket, event)| (ticket.at, event))
    }

    /// Takes all events out for which `wanted` holds, in their order.
    pub fn extract(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<T> {
        let events = self.events.extract_if(.., |_, event| wanted(event));
        events.map(|(_, event)| event).collect()
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::Stream;

    /// Against a list that is sorted.
    #[test]
    fn events_happen_by_time_rank_and_order() {
        let mut numbers = Stream::from_state(4);
        let mut queue = EventQueue::default();
        let mut naive: Vec<(u64, u32, u32)> = Vec::new();
        let mut tickets = Vec::new();
        for n in 0..5000 {
            let (at, rank) = (numbers.below(50), numbers.below(3) as u32);
            match numbers.below(4) {
                0 | 1 => {
                    tickets.push((n, queue.push(at, rank, n)));
                    naive.push((at, rank, n));
                    naive.sort();
                }
                2 if !tickets.is_empty() => {
                    let which = numbers.below(tickets.len() as u64) as usize;
                    let (n, ticket) = tickets.remove(which);
                    let expected = naive.iter().position(|e| e.2 == n);
                    let expected = expected.map(|at| naive.remove(at).2);
                    assert_eq!(queue.cancel(ticket), expected);
                }
                _ => {
                    let due = naive.first().is_some_and(|e| e.0 <= at);
                    let expected = due.then(|| naive.remove(0));
                    assert_eq!(queue.pop(at), expected.map(|e| (e.0, e.2)));
                }
            }
            assert_eq!(queue.len(), naive.len());
            assert_eq!(queue.next_time(), naive.first().map(|e| e.0));
        }
    }
}
