#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
#
# Edits a copy of Linux' net/ceph: messenger 1 hands the socket the data of a bio at one go, not page by page. This is the mechanism
# that seed 001 ("libceph: messenger: send/recv data at one go") proposed in 2020, written anew for 5.10, 6.1 and 6.12.
#
# The rest of iotoll is MIT or Apache-2.0. What this script makes is a derived work of Linux, so this file and its result are under
# the GPL, version 2 only. It is run by hand or by measure.sh, and is no part of the program.
#
# Usage: edit-libceph.py FOLDER        (a copy of net/ceph; its files are changed)

import pathlib
import sys

# Kernels without MSG_SPLICE_PAGES: a sendpage call for each segment, of any number of pages.
SEND_SEGMENT = '''
/*
 * Sends the rest of the segment that the cursor is in: what is contiguous in
 * memory, however many pages it has.
 */
static int send_bio_data(struct ceph_connection *con,
			 struct ceph_msg_data_cursor *cursor)
{
	struct ceph_bio_iter *at = &cursor->bio_iter;
	struct bio_vec segment = mp_bvec_iter_bvec(at->bio->bi_io_vec,
						   at->iter);
	int more = MSG_MORE;

	if (segment.bv_len < cursor->total_resid)
		more |= MSG_SENDPAGE_NOTLAST;
	return ceph_tcp_sendpage(con->sock, segment.bv_page,
				 segment.bv_offset, segment.bv_len, more);
}

/* ceph_tcp_sendpage() decides for each segment. */
static bool can_send_bio_data(struct ceph_msg_data_cursor *cursor)
{
	return true;
}
'''

# Kernels with MSG_SPLICE_PAGES: one sendmsg call for all that is left of the bio.
SEND_BIO = '''
/* Sends all that is left of the bio that the cursor is in. */
static int send_bio_data(struct ceph_connection *con,
			 struct ceph_msg_data_cursor *cursor)
{
	struct msghdr msg = {
		.msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE |
			     MSG_SPLICE_PAGES,
	};
	int ret;

	rest_of_bio(&msg.msg_iter, ITER_SOURCE, cursor);
	ret = sock_sendmsg(con->sock, &msg);
	return ret == -EAGAIN ? 0 : ret;
}

/* Whether the socket may keep references to all pages of the rest. */
static bool can_send_bio_data(struct ceph_msg_data_cursor *cursor)
{
	struct bvec_iter at = cursor->bio_iter.iter;
	struct bio_vec *segments = cursor->bio_iter.bio->bi_io_vec;

	while (at.bi_size) {
		struct bio_vec segment = mp_bvec_iter_bvec(segments, at);

		if (!sendpage_ok(segment.bv_page))
			return false;
		bvec_iter_advance(segments, &at, segment.bv_len);
	}
	return true;
}
'''

HELPERS = '''
/* The rest of the bio that the cursor is in, as an iterator. */
static void rest_of_bio(struct iov_iter *rest, unsigned int direction,
			struct ceph_msg_data_cursor *cursor)
{
	struct bio *bio = cursor->bio_iter.bio;
	struct bvec_iter *at = &cursor->bio_iter.iter;

	/* A clone does not know the number of its segments. */
	iov_iter_bvec(rest, direction, &bio->bi_io_vec[at->bi_idx],
		      MOST_SEGMENTS, at->bi_bvec_done + at->bi_size);
	iov_iter_advance(rest, at->bi_bvec_done);
}

static int receive_bio_data(struct ceph_connection *con,
			    struct ceph_msg_data_cursor *cursor)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	int ret;

	rest_of_bio(&msg.msg_iter, TO_MEMORY, cursor);
	ret = sock_recvmsg(con->sock, &msg, msg.msg_flags);
	return ret == -EAGAIN ? 0 : ret;
}

/* The CRC over the next bytes of the bio that the cursor is in. */
static u32 crc_of_bio_data(u32 crc, struct ceph_msg_data_cursor *cursor,
			   unsigned int bytes)
{
	struct bvec_iter from = cursor->bio_iter.iter, at;
	struct bio_vec piece;

	from.bi_size = bytes;
	for_each_bvec(piece, cursor->bio_iter.bio->bi_io_vec, at, from)
		crc = ceph_crc32c_page(crc, piece.bv_page, piece.bv_offset,
				       piece.bv_len);
	return crc;
}
'''

# In the loop over the data of a message, before its page-wise way.
AT_ONE_GO = '''		if (cursor->data->type == CEPH_MSG_DATA_BIO%(condition)s) {
			ret = %(function)s(con, cursor);
			if (ret <= 0) {
				if (do_datacrc)
					%(keep)s;
				return ret;
			}
			if (do_datacrc)
				crc = crc_of_bio_data(crc, cursor, ret);
			ceph_msg_data_advance(cursor, (size_t)ret);
			continue;
		}

'''
PAGE_WISE = "\t\tpage = ceph_msg_data_next(cursor,"


def changed_once(text, old, new, what):
    if text.count(old) != 1:
        sys.exit(f"edit-libceph.py: {what}: found {text.count(old)} times, expected once; this kernel's libceph is not known")
    return text.replace(old, new)


def in_function(text, begin, old, new):
    """Replaces `old` in the function that begins so."""
    if text.count(begin) != 1:
        sys.exit(f"edit-libceph.py: {begin}: found {text.count(begin)} times, expected once; this kernel's libceph is not known")
    first = text.index(begin)
    end = text.index("\n}\n", first)
    return text[:first] + changed_once(text[first:end], old, new, f"in {begin}") + text[end:]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: edit-libceph.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    common = folder / "messenger.c"
    own = folder / "messenger_v1.c"
    if not own.exists():
        own = common  # before 5.11
    if not common.exists():
        sys.exit(f"edit-libceph.py: {folder}: no messenger.c; give a copy of net/ceph")

    # An advance may go over several segments.
    text = common.read_text()
    begin = "static bool ceph_msg_data_bio_advance("
    text = in_function(text, begin, "BUG_ON(bytes > bio_iter_len(it->bio, it->iter));", "BUG_ON(bytes > it->iter.bi_size);")
    if "last_piece" in text:
        text = in_function(text, begin, "BUG_ON(!cursor->last_piece);", "cursor->last_piece = true;")
        text = in_function(text, begin, "\tBUG_ON(cursor->last_piece);\n", "")
    common.write_text(text)

    text = own.read_text()
    splices = "MSG_SPLICE_PAGES" in text
    send = "static int write_partial_message_data(struct ceph_connection *con)\n{"
    receive = "static int read_partial_msg_data(struct ceph_connection *con)\n{"
    for begin, function, keep, condition in (
        (send, "send_bio_data", "msg->footer.data_crc = cpu_to_le32(crc)", " && can_send_bio_data(cursor)"),
        (receive, "receive_bio_data", "con->in_data_crc = crc", ""),
    ):
        piece = AT_ONE_GO % {"function": function, "keep": keep, "condition": condition}
        text = in_function(text, begin, PAGE_WISE, piece + PAGE_WISE)
    helpers = HELPERS + (SEND_BIO if splices else SEND_SEGMENT)
    helpers = helpers.replace("MOST_SEGMENTS", "BIO_MAX_PAGES" if own == common else "BIO_MAX_VECS")
    helpers = helpers.replace("TO_MEMORY", "ITER_DEST" if "ITER_DEST" in text else "READ")
    # Before the comment of the function that uses them first.
    place = text.rindex("/*\n", 0, text.index(send))
    text = text[:place] + helpers.lstrip("\n") + "\n" + text[place:]
    if "#include <linux/bio.h>" not in text:
        text = changed_once(text, "#include <linux/bvec.h>\n", "#include <linux/bio.h>\n#include <linux/bvec.h>\n", "its includes")
    own.write_text(text)


main()
