//! Elements and attributes of a `<source>` on the network, from the rows of vmdisk-fields.

use std::slice::from_ref;

use vmdisk_fields::image;
use vmdisk_model::{ImageField, NetworkSource, NetworkTransport};

use super::ValueSpec::{Port, Text, Words};
use super::rows::{gather, image_attribute, image_child, is_on};
use super::{AttributeSpec, ChildSpec, ElementSpec, Need, attribute, child};

/// The fields of a network source.
const OF_NETWORK: &[ImageField] = NetworkSource::FIELDS;

/// The elements whose only attribute is a field of a network source; the others are empty.
static LEAVES: [ElementSpec; OF_NETWORK.len()] = {
    static ATTRIBUTES: [AttributeSpec; OF_NETWORK.len()] = {
        let mut attributes = [attribute("", (0, 0, 0), Text); OF_NETWORK.len()];
        let mut nth = 0;
        while nth < OF_NETWORK.len() {
            attributes[nth] = image_attribute(OF_NETWORK[nth]);
            nth += 1;
        }
        attributes
    };
    let mut leaves = [const { ElementSpec::new("") }; OF_NETWORK.len()];
    let mut nth = 0;
    while nth < OF_NETWORK.len() {
        let name = image(OF_NETWORK[nth]).libvirt.parent().name();
        leaves[nth] = ElementSpec::new(name).attributes(from_ref(&ATTRIBUTES[nth]));
        nth += 1;
    }
    leaves
};

/// The element whose only attribute is this field of a network source.
const fn leaf(field: ImageField) -> &'static ElementSpec {
    let mut nth = 0;
    while OF_NETWORK[nth] as usize != field as usize {
        nth += 1;
    }
    &LEAVES[nth]
}

/// The number of fields of a network source that are elements.
pub(super) const ELEMENTS_OF_NETWORK: usize =
    OF_NETWORK.len() - count_of_network("source") - count_of_network("source/identity");

/// The elements of a network source: of each field, then `others`.
pub(super) const fn network_children<const N: usize>(others: &[ChildSpec]) -> [ChildSpec; N] {
    let mut children = [others[0]; N];
    let (mut next, mut at) = (0, 0);
    while at < OF_NETWORK.len() {
        let field = OF_NETWORK[at];
        let is_part = is_on(image(field), "source/identity");
        if !is_part && !is_on(image(field), "source") {
            children[next] = image_child(field, network_element(field));
            // Only lists of servers can be repeated.
            children[next].repeats = matches!(field, ImageField::Hosts);
            next += 1;
        }
        at += 1;
    }
    let mut nth = 0;
    while nth < others.len() {
        children[next] = others[nth];
        (next, nth) = (next + 1, nth + 1);
    }
    children
}

/// The element of a field of a network source.
const fn network_element(field: ImageField) -> &'static ElementSpec {
    match field {
        ImageField::Hosts => &HOST,
        ImageField::Initiator => &INITIATOR,
        ImageField::Cookies => &COOKIES,
        _ => leaf(field),
    }
}

gather!(
    count_of_network,
    gather_of_network,
    OF_NETWORK,
    image,
    image_attribute
);
static HOST: ElementSpec = ElementSpec::new("host").attributes(&[
    attribute("name", (0, 8, 7), Text),
    attribute("port", (0, 8, 7), Port),
    attribute("transport", (0, 10, 2), Words(NetworkTransport::WORDS)),
    attribute("socket", (0, 10, 2), Text),
]);

pub(super) static INITIATOR: ElementSpec =
    ElementSpec::new("initiator").children(&[child((4, 7, 0), leaf(ImageField::Initiator))]);

static COOKIES: ElementSpec = ElementSpec::new("cookies")
    .needs(&[Need::Distinct("cookie", "name")])
    .children(&[child((6, 2, 0), &COOKIE).many()]);

static COOKIE: ElementSpec = ElementSpec::new("cookie")
    .needs(&[Need::Attribute("name")])
    .attributes(&[attribute("name", (6, 2, 0), Text)])
    .content(Text);

pub(super) static IDENTITY: ElementSpec = {
    const PARTS: [AttributeSpec; count_of_network("source/identity")] =
        gather_of_network(&[], "source/identity");
    ElementSpec::new("identity").attributes(&PARTS)
};
